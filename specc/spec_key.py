"""Spec Keys: names for the nodes of a model, such as `google/gemma-4-31B@1.0:layers[*].attn.core`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from specc.diagnostics import Diagnostic, SpecError, nearest
from specc.ir import Model, NodeVariant

KEY = re.compile(
    r"(?:(?P<model>[^@:\s]+)@(?P<version>[0-9]+(?:\.[0-9]+)*):)?"
    r"(?:layers\[(?P<layer>\*|[0-9]{1,9})\]\.)?"
    r"(?P<node>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)"
)
EXAMPLE = "a key is written `google/gemma-4-31B@1.0:layers[*].attn.core`, or `layers[5].attn.core`, or `lm_head`"


@dataclass(frozen=True)
class SpecKey:
    """A node, in one layer, in all its layers (`layer` is "*"), or outside the layers (None)."""

    node: str
    layer: int | str | None = None
    model: str | None = None
    version: str | None = None

    def __str__(self) -> str:
        head = f"{self.model}@{self.version}:" if self.model else ""
        return head + ("" if self.layer is None else f"layers[{self.layer}].") + self.node


def parse_key(text: str) -> SpecKey:
    """The key that `text` writes. Raises SpecError (E280)."""
    found = KEY.fullmatch(text.strip())
    if found is None:
        raise _error("E280", f"{text!r} is no Spec Key", EXAMPLE)
    layer = found["layer"]
    return SpecKey(found["node"], int(layer) if layer and layer != "*" else layer, found["model"], found["version"])


def format_key(model: Model, node: NodeVariant, layer: int | None = None) -> str:
    """The full key of a node: in all its layers, or in one."""
    inside = None if node.layers is None else "*" if layer is None else layer
    return str(SpecKey(node.path, inside, model.key, model.version))


def resolve(model: Model, text: str) -> list[NodeVariant]:
    """The variants that a key names, in the order of the page. A key without layers names a node wherever it stands.
    Raises SpecError (E280 to E283)."""
    key = parse_key(text)
    if key.model is not None and (key.model, key.version) != (model.key, model.version):
        raise _error("E282", f"`{text}` is a key of another model", f"this is {model.key}@{model.version}")
    variants = model.variants(key.node)
    if not variants:
        raise _error(
            "E281", f"`{model.key}` has no node `{key.node}`", nearest(key.node, [n.path for n in model.nodes])
        )
    if key.layer is None or variants[0].layers is None:
        return _outside(key, variants)
    if isinstance(key.layer, int):
        return [_in_layer(model, key, key.layer, variants)]
    return list(variants)


def _outside(key: SpecKey, variants: tuple[NodeVariant, ...]) -> list[NodeVariant]:
    if key.layer is not None:
        raise _error("E283", f"`{key.node}` stands outside the layers", f"write `{key.node}`")
    return list(variants)


def _in_layer(model: Model, key: SpecKey, layer: int, variants: tuple[NodeVariant, ...]) -> NodeVariant:
    if layer >= model.layer_count:
        raise _error("E283", f"there is no layer {layer}", f"layers are 0 to {model.layer_count - 1}")
    for variant in variants:
        if layer in (variant.layers or ()):
            return variant
    stands = "; ".join(f"{v.layer_class}: {_few(v.layers or ())}" for v in variants)
    raise _error("E283", f"`{key.node}` does not stand in layer {layer}", f"it stands in {stands}")


def _few(layers: tuple[int, ...]) -> str:
    return ", ".join(map(str, layers)) if len(layers) < 5 else f"{layers[0]}, {layers[1]}, …, {layers[-1]}"


def _error(code: str, message: str, help: str) -> SpecError:
    return SpecError([Diagnostic(code, message, None, help)])
