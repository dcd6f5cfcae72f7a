"""What a reader wants to know first, read off the model. A fact that a model does not have is left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from specc.format import format_value
from specc.formula_text import expr_text
from specc.ir import Model, NodeVariant, Phase, Weight
from specc.ops import Bin, Expr, Load, Named, Num, Sort, Var, rebuild
from specc.page.markdown import code, escape

Constants = Mapping[str, Expr | str | bool]


@dataclass(frozen=True)
class Fact:
    """`value` is Markdown."""

    label: str
    value: str


def facts(model: Model) -> tuple[Fact, ...]:
    """At a glance, in the order of the founding page."""
    found = [
        Fact("Model key", code(model.key)),
        Fact("Parameters (text model)", f"{model.parameter_count:,}"),
        Fact("Layers", _layers(model)),
        *(Fact("Hidden size", f"{int(d.value):,}") for d in model.stream.dims[-1:] if isinstance(d, Num)),
        *_mlp(model),
        *_vocabulary(model),
        *_norm(model),
        *_embedding(model),
        *_logits(model),
        Fact("Hugging Face class", code(model.official_class.rsplit(".", 1)[-1])),
        Fact("Shape domain", _domain(model)),
    ]
    return tuple(f for f in found if f.value not in ("", "``"))


def _layers(model: Model) -> str:
    named = [f"{len(c.layers)} {escape(c.label or c.name)}" for c in model.classes]
    return f"{model.layer_count} ({', '.join(named)})" if named else str(model.layer_count)


def _mlp(model: Model) -> Iterator[Fact]:
    """The node whose constants name an activation."""
    for node in model.nodes:
        constants = dict(node.constants)
        width, act = constants.get("I"), constants.get("act")
        if isinstance(width, Num) and isinstance(act, str):
            yield Fact("MLP width", f"{int(width.value):,} ({escape(act)})")
            return


def _norm(model: Model) -> Iterator[Fact]:
    """The norm that reads the residual stream first: what stands around its normalised vector x̂, and its ε."""
    for node in model.nodes:
        reads = [r.wire for a in node.applications for r in a.reads]
        eps = dict(node.constants).get("eps")
        if reads == [model.stream.name] and eps is not None:
            yield Fact("Norm", f"{code(_around(node))}, ε = {format_value(eps)}")
            return


def _around(node: NodeVariant) -> str:
    """`w·x̂` for a formula that is a `let` times a factor; the name of the op for another."""
    expr = node.phase(Phase.PREFILL)[0].formula.equations[0].expr
    if not (isinstance(expr, Bin) and expr.op == "·" and isinstance(expr.left, Named)):
        return node.op.name
    factor = expr_text(_bare(expr.right))
    return f"({factor})·x̂" if " " in factor else f"{factor}·x̂"


def _bare(e: Expr) -> Expr:
    """Operands without their indices."""
    return Var(e.tensor) if isinstance(e, Load) else rebuild(e, _bare)


def _embeddings(model: Model) -> Iterator[tuple[NodeVariant, Weight]]:
    """Nodes before the layers that look rows of a matrix up."""
    for node in model.outside(-1):
        indexed = any(t.sort is Sort.INDEX for t in node.phase(Phase.PREFILL)[0].formula.inputs)
        yield from ((node, w) for w in node.weights if indexed and len(w.shape) == 2)


def _vocabulary(model: Model) -> Iterator[Fact]:
    for _, weight in _embeddings(model):
        yield Fact("Vocabulary", f"{weight.shape[0]:,}")


def _embedding(model: Model) -> Iterator[Fact]:
    for node, weight in _embeddings(model):
        constants = dict(node.constants)
        tied = any(w.tied == (node.path, weight.name) for n in model.nodes for w in n.weights)
        norm = f", normed with ε = {format_value(constants['eps'])}" if constants.get("norm") is True else ""
        scale = "".join(f", {text}" for text in _scale(constants))
        yield Fact("Embedding", ("tied to the LM head" if tied else "not tied") + norm + scale)


def _scale(constants: Constants) -> Iterator[str]:
    """`× √5376`, unless the factor is 1."""
    mul = constants.get("mul")
    if mul is not None and format_value(mul) != "1":
        yield f"× {format_value(mul)}"


def _logits(model: Model) -> Iterator[Fact]:
    for node in model.outside(1):
        constants = dict(node.constants)
        cap = constants.get("softcap")
        parts = [*_scale(constants), *([] if cap is None else [f"soft-capped at {format_value(cap)}"])]
        if parts:
            yield Fact("Logits", ", ".join(parts))


def _domain(model: Model) -> str:
    ranges = [
        f"{code(d.name)} ∈ \\[{d.low:,}, {d.high:,}]" + (f" {escape(d.unit)}" if d.unit else "") for d in model.domain
    ]
    return ", ".join([*ranges, f"page size {model.page}"])
