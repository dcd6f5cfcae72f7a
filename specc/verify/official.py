"""The official transformers class of a spec, its text path, with given weights.

The class and its configuration are built as published, only smaller. Parts beside the text (towers for images) stay on
the meta device: they are never run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import nn

from specc import pipeline
from specc.diagnostics import Diagnostic, SpecError
from specc.ir import Model
from specc.oracle.arrays import Array
from specc.verify.implementation import Tap, Trace
from specc.verify.lift import Lift


class Official:
    """`model` as the library that its spec names computes it, on checkpoint `tensors`, stored in `dtype`.

    `lift` is entered around construction and forward; None leaves the code to its own roundings. Raises SpecError
    (E521) where the class cannot be built or its tensors are not those of the spec."""

    def __init__(
        self,
        model: Model,
        tensors: Mapping[str, Array],
        lift: Lift | None = None,
        dtype: torch.dtype = torch.float64,
    ) -> None:
        self.model, self.lift = model, lift
        with self._precise(), torch.no_grad():
            self.module = build(model)
            decoder = self.module.get_decoder()
            with _new_tensors(dtype):
                fresh = type(decoder)(decoder.config)
            if dtype is torch.float64:
                fresh.to(dtype)
            for name in _names(self.module, decoder):
                self.module.set_submodule(name, fresh)
            head = self.module.get_output_embeddings()
            if head.weight.is_meta:
                head.to_empty(device="cpu").to(dtype)
            self.module.tie_weights()
            self.module.eval()
            _load(text_tensors(self.module), tensors)

    @contextmanager
    def _precise(self) -> Iterator[None]:
        if self.lift is None:
            yield
        else:
            with self.lift():
                yield

    def prefill(self, tokens: Array) -> Trace:
        """Hidden states are what the layers read and give; taps are the modules that hold a weight."""
        seen, cache = _Seen(self.module, self.model, len(tokens)), self.cache()
        with seen.hooks():
            logits = self._forward(tokens, cache)
        return Trace(logits, seen.hidden(), seen.found, _appended(cache))

    def decode(self, tokens: Array, start: int) -> Array:
        """The library's own cache, filled with the first tokens at once."""
        cache = self.cache()
        if start:
            self._forward(tokens[:start], cache)
        return np.concatenate([self._forward(tokens[t : t + 1], cache) for t in range(start, len(tokens))])

    def each_layer(self, tokens: Array, hidden: Sequence[Array]) -> list[Array]:
        """What each layer gives for `hidden`, the stream that it is to read instead of that of the layer before."""
        seen = _Seen(self.module, self.model, len(tokens), hidden)
        with seen.hooks():
            self._forward(tokens, self.cache())
        return list(seen.hidden()[1:])

    def cache(self) -> Any:
        """An empty cache of the library."""
        from transformers import DynamicCache

        return DynamicCache(config=self.module.config.get_text_config())

    def _forward(self, tokens: Array, cache: Any) -> Array:
        ids = torch.as_tensor(tokens, dtype=torch.int64)[None]
        with self._precise(), torch.no_grad():
            out = self.module(input_ids=ids, cache=cache, use_cache=True)
        return array(out.logits[0])


@contextmanager
def _new_tensors(dtype: torch.dtype) -> Iterator[None]:
    """A model in a short type is built in it, as the library loads one: `.to` would round tables of angles too."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype if dtype.itemsize < before.itemsize else before)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def array(tensor: torch.Tensor) -> Array:
    """A copy in float64."""
    return tensor.detach().to(torch.float64).numpy().copy()


def build(model: Model) -> Any:
    """The official class of `model` on the meta device, all attention eager. Raises SpecError (E521)."""
    import transformers
    from huggingface_hub.errors import StrictDataclassError

    name = model.official_class.rpartition(".")[2]
    if not model.official_class.startswith("transformers.") or not hasattr(transformers, name):
        message = f"transformers {transformers.__version__} has no class `{name}`"
        raise SpecError([Diagnostic("E521", message, None, "the `class` line of the spec names it")])
    kind = getattr(transformers, name)
    values = json.loads(pipeline.config_text(model))
    values.pop("architectures", None)
    try:
        config = kind.config_class(**values)
        config._attn_implementation = "eager"
        with torch.device("meta"):
            module = kind(config)
        if module.get_output_embeddings() is None:
            raise ValueError("it gives no logits")
        return module
    except (AttributeError, KeyError, TypeError, ValueError, RuntimeError, StrictDataclassError) as error:
        message = f"`{name}` cannot be built from the config of the spec: {error}"
        help_ = f"transformers {transformers.__version__}"
        if "expected float" in str(error):
            help_ = "a number that is written with a point, as `30.0`, is a float"
        raise SpecError([Diagnostic("E521", message, None, help_)]) from error


def text_tensors(module: Any) -> dict[str, torch.Tensor]:
    """The tensors of the text path by their checkpoint names, a shared one by the first of its names."""
    roots = [n for part in (module.get_decoder(), module.get_output_embeddings()) for n in _names(module, part)]
    found: dict[int, tuple[str, torch.Tensor]] = {}
    for name, tensor in module.state_dict(keep_vars=True).items():
        if any(name.startswith(root + ".") for root in roots):
            found.setdefault(id(tensor), (name, tensor))
    return dict(found.values())


def parameter_count(model: Model) -> int:
    """Elements of the text path of the official class at the sizes of `model`; nothing is allocated."""
    return sum(t.numel() for t in text_tensors(build(model)).values())


def _names(module: nn.Module, part: nn.Module) -> list[str]:
    return [name for name, m in module.named_modules(remove_duplicate=False) if m is part]


def _load(own: Mapping[str, torch.Tensor], tensors: Mapping[str, Array]) -> None:
    """Raises SpecError (E521) unless both have the same names and shapes."""
    wrong = [f"the class has no `{n}`" for n in sorted(tensors.keys() - own.keys())]
    wrong += [f"the spec has no `{n}`" for n in sorted(own.keys() - tensors.keys())]
    wrong += [
        f"`{n}` is {list(t.shape)} in the class, {list(tensors[n].shape)} in the spec"
        for n, t in own.items()
        if n in tensors and tuple(t.shape) != tensors[n].shape
    ]
    if wrong:
        raise SpecError([Diagnostic("E521", f"the tensors differ: {w}") for w in wrong[:8]])
    for name, tensor in own.items():
        tensor.copy_(torch.as_tensor(tensors[name], dtype=torch.float64).to(tensor.dtype))


class _Seen:
    """What hooks saw in one forward pass."""

    def __init__(self, module: Any, model: Model, length: int, given: Sequence[Array] = ()) -> None:
        pieces = [p for n in model.nodes for w in n.weights for p in w.pieces if "{i}" in p.name]
        stem = pieces[0].name.partition("{i}")[0]
        self.layers = [module.get_submodule(f"{stem}{i}") for i in range(model.layer_count)]
        self.modules = [n.removesuffix(".weight") for n in text_tensors(module) if n.endswith(".weight")]
        self.module, self.length, self.given = module, length, given
        self.streams: dict[int, list[Array]] = {}
        self.found: dict[str, Tap] = {}

    @contextmanager
    def hooks(self) -> Iterator[None]:
        handles = []
        for i, layer in enumerate(self.layers):
            handles.append(layer.register_forward_pre_hook(self._before(i), with_kwargs=True))
            handles.append(layer.register_forward_hook(self._after(i)))
        for name in self.modules:
            handles.append(self.module.get_submodule(name).register_forward_hook(self._tap(name)))
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def _before(self, layer: int) -> Any:
        def hook(_: nn.Module, args: Any, kwargs: Any) -> Any:
            stream = args[0] if args else kwargs["hidden_states"]
            if self.given:
                stream = torch.as_tensor(self.given[layer]).to(stream.dtype)[None]
            self.streams[layer] = [array(stream[0])]
            return ((stream, *args[1:]), kwargs) if args else (args, {**kwargs, "hidden_states": stream})

        return hook

    def _after(self, layer: int) -> Any:
        def hook(_: nn.Module, args: Any, out: Any) -> None:
            self.streams[layer].append(array((out[0] if isinstance(out, tuple) else out)[0]))

        return hook

    def _tap(self, name: str) -> Any:
        def hook(_: nn.Module, args: Any, out: Any) -> None:
            if args and isinstance(args[0], torch.Tensor) and args[0].is_floating_point():
                self.found[name] = Tap(self._text(args[0]), self._text(out) if isinstance(out, torch.Tensor) else None)

        return hook

    def _text(self, tensor: torch.Tensor) -> Array:
        """[T, …]: without the axis of sequences, and with that of tokens before that of heads."""
        found = array(tensor[0] if tensor.dim() > 2 and tensor.shape[0] == 1 else tensor)
        if found.shape[0] != self.length and found.ndim > 2 and found.shape[1] == self.length:
            return np.swapaxes(found, 0, 1)
        return found.reshape(self.length, -1, found.shape[-1]) if found.shape[0] != self.length else found

    def hidden(self) -> tuple[Array, ...]:
        return (self.streams[0][0], *(self.streams[i][1] for i in range(len(self.layers))))


def _appended(cache: Any) -> dict[int, tuple[Array, ...]]:
    """Keys and values by layer, [L, heads, D]; layers that keep another state have none."""
    found: dict[int, tuple[Array, ...]] = {}
    for i, layer in enumerate(cache.layers):
        if isinstance(getattr(layer, "keys", None), torch.Tensor):
            found[i] = tuple(array(x[0].transpose(0, 1)) for x in (layer.keys, layer.values))
    return found
