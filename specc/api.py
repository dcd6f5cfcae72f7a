"""specc from Python.

spec = specc.load("specs/gemma4.spec")
node = spec.reduced(hidden=48).node("layers[*].input_norm")
node.oracle(x=x, w=w)["y"]
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from os import PathLike
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any

from specc import pipeline
from specc.diagnostics import Diagnostic, SpecError, nearest
from specc.formula_text import formula_text
from specc.inputs import TARGETS, Options, read_source
from specc.ir import BoundOp, Model, NodeVariant, Phase, Role
from specc.ops import Expr, Formula
from specc.pipeline import Build
from specc.spec_key import format_key, parse_key, resolve
from specc.syntax_spec import SpecFile
from specc.tiles import tile_tables

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from specc.kernels import Kernel
    from specc.targets.tile_table import TileTable

DTYPES = ("bfloat16", "float16", "float32", "float64")
GPU_DTYPES = ("bfloat16", "float16", "float32")
NAME, PATH = (str,), (str, PathLike)
OPTIONS: Mapping[str, tuple[type, ...]] = {
    "target": NAME, "dtype": NAME, "phase": (*NAME, NoneType), "gpu": (*NAME, NoneType), "out": PATH,
    "tiles": (*PATH, NoneType),
}  # fmt: skip
"""What the options of calls may be."""


@dataclass(frozen=True)
class Node:
    """One row of the node table: a node in the layers in which it has these constants."""

    model: Model
    variant: NodeVariant

    def __repr__(self) -> str:
        return f"<Node {self.key}: {self.op}>"

    @property
    def key(self) -> str:
        """A Spec Key that names this variant and no other."""
        variant = self.variant
        alone = len(self.model.variants(variant.path)) == 1
        return format_key(self.model, variant, None if alone or variant.layers is None else variant.layers[0])

    @property
    def path(self) -> str:
        return self.variant.path

    @property
    def op(self) -> str:
        return self.variant.op.name

    @property
    def layers(self) -> tuple[int, ...] | None:
        """Layer indices, or None outside the layers."""
        return self.variant.layers

    @property
    def constants(self) -> dict[str, Expr | str | bool]:
        return dict(self.variant.constants)

    @property
    def phases(self) -> tuple[str, ...]:
        """`prefill`, and `decode` where the node has a form of its own for it."""
        return tuple(str(phase) for phase, _ in self.variant.bound)

    def formula(self, phase: str | None = None) -> tuple[str, ...]:
        """The lines of the formula. `phase`: that of the node's op when not given. Raises SpecError."""
        return formula_text(self._bound(phase)[0].formula)

    def oracle(
        self, tensors: Mapping[str, Any] | None = None, /, *, phase: str | None = None, **named: Any
    ) -> dict[str, npt.NDArray[np.float64]]:
        """The results by the definition, in float64. `tensors` and `named`: an array for each operand, weights
        included; one that has the name of an option, such as `phase`, in `tensors`.

        Raises SpecError for a phase that the node does not have and operands that do not fit."""
        from specc.oracle import evaluate

        arrays = {name: _array(value) for name, value in _given(tensors, named).items()}
        formula = self._fitting(self._bound(phase), arrays).formula
        try:
            return evaluate(formula, arrays)
        except (IndexError, TypeError, ValueError) as error:
            raise SpecError([Diagnostic("E507", f"`{self.path}`: {error}", None, _operands(formula))]) from error

    def run(
        self,
        target: str,
        tensors: Mapping[str, Any] | None = None,
        /,
        *,
        dtype: str = "float32",
        phase: str | None = None,
        tiles: str | PathLike[str] | None = None,
        gpu: str | None = None,
        **named: Any,
    ) -> dict[str, Any]:
        """The results that a target computes when everything is stored in `dtype`, as float64. `tensors` and `named` as
        for `oracle`.

        `torch` runs the reference function on the CPU, `triton` the generated kernel in the interpreter, and `cuda` the
        generated kernel, built for the CPU; given torch tensors on a GPU, there, as they lie and in their own type, on
        the current stream, and the results are such tensors too (`dtype` then is that of the results of a node without
        real operands). `tiles`: a table whose rows come before the shipped ones. `gpu` ("sm_90"): without a GPU, the
        kernel still has the tiles that it has on that one.
        Raises SpecError like `oracle`, for an unknown target or type, and where the target fails (E510)."""
        _check_options(target=target, dtype=dtype, phase=phase, tiles=tiles, gpu=gpu)
        _known("target", target, TARGETS)
        tables = checked_tables(target, dtype, tiles, gpu)
        given = _given(tensors, named)
        if target == "cuda" and any(getattr(value, "is_cuda", False) for value in given.values()):
            return self._on_device(phase, given, tables[target], dtype)
        arrays = {name: _array(value) for name, value in given.items()}
        bound = self._fitting(self._bound(phase), arrays)
        with _failures(self, target):
            if target == "torch":
                found = _run_torch(self, bound, arrays, dtype)
            else:
                found = _run_kernels(self, target, bound, arrays, dtype, tables[target])
        return {name: value.detach().cpu().double().numpy() for name, value in found.items()}

    def _on_device(self, phase: str | None, tensors: Mapping[str, Any], table: TileTable, dtype: str) -> dict[str, Any]:
        from specc.targets.cuda.device import run_on_device
        from specc.targets.cuda.emit import emit

        apart = [name for name, value in tensors.items() if not hasattr(value, "is_cuda")]
        if apart:
            message = f"`{self.path}`: `{apart[0]}` is no tensor, but others are tensors on a GPU"
            raise SpecError([Diagnostic("E507", message, None, "put all operands on the GPU, or none")])
        bound = self._fitting(self._bound(phase), {name: _outline(value) for name, value in tensors.items()})
        found: dict[str, Any] = {}
        with _failures(self, "cuda"):
            for kernel in self.kernels(_phase_of(self, bound)):
                wanted = [o.name for o in kernel.operands if not o.output]
                text, given = emit(kernel, table=table), {n: tensors[n] for n in wanted}
                found |= run_on_device(kernel, text, given, dtype=dtype)
        return found

    def kernel(self, phase: str | None = None) -> Kernel:
        """The lowered kernel of a phase, the first where there are several. Raises SpecError where no schedule takes
        the op."""
        return self.kernels(phase)[0]

    def kernels(self, phase: str | None = None) -> tuple[Kernel, ...]:
        """The lowered kernels of a phase, which together give all results. Raises SpecError where no schedule takes
        the op."""
        from specc.lowered import all_kernels, lower_each

        wanted = self._phase(phase)
        found = all_kernels(lower_each(self.model, [self.variant]))
        return tuple(k for k in found if k.phase == wanted or len(self.variant.bound) == 1)

    def _phase(self, phase: str | None) -> Phase:
        _check_options(phase=phase)
        if phase is None:
            return self.variant.bound[-1][0]
        _known("phase", phase, [str(p) for p in Phase])
        return Phase(phase)

    def _bound(self, phase: str | None) -> tuple[BoundOp, ...]:
        return self.variant.phase(self._phase(phase))

    def _fitting(self, bound: Sequence[BoundOp], arrays: Mapping[str, Any]) -> BoundOp:
        """The application whose shapes the operands have."""
        from specc.oracle.sizes import bind

        problems: list[str] = []
        for one in bound:
            try:
                bind(one.formula, arrays)
                return one
            except (ValueError, KeyError) as error:
                problems.append(str(error))
        raise SpecError([Diagnostic("E507", f"`{self.path}`: {problems[0]}", None, _operands(bound[0].formula))])


@contextmanager
def _failures(node: Node, target: str) -> Iterator[None]:
    """What a target raises, as a SpecError (E510)."""
    from specc.targets.report import CompileError
    from specc.targets.triton.interpret_faults import KernelFault

    try:
        yield
    except (KernelFault, CompileError, IndexError, TypeError, ValueError, RuntimeError) as error:
        said = "; ".join(line.strip() for line in str(error).splitlines() if line.strip())
        message = f"the target failed: {type(error).__name__}: {said}"
        raise SpecError([Diagnostic("E510", message, None, f"{target} computed `{node.path}`")]) from error


def _run_torch(node: Node, bound: BoundOp, arrays: Mapping[str, Any], dtype: str) -> Mapping[str, Any]:
    from specc.targets.torch.target import run_node

    return run_node(bound.formula, dict(bound.roles), arrays, dtype, node.model.profile.rounds)


def _run_kernels(
    node: Node, target: str, bound: BoundOp, arrays: Mapping[str, Any], dtype: str, table: TileTable
) -> Mapping[str, Any]:
    import torch

    from specc.evidence.store import untyped_results
    from specc.oracle.sizes import bind

    run = import_module(f"specc.targets.{target}.target").run
    found: dict[str, torch.Tensor] = {}
    for kernel in node.kernels(_phase_of(node, bound)):
        operands = {o.name: o for o in kernel.operands if not o.output}
        tensors = {n: torch.as_tensor(arrays[n]) for n in operands}
        stored = {
            n: t if operands[n].role is Role.INDEX else t.to(getattr(torch, operands[n].stored(dtype)))
            for n, t in tensors.items()
        }
        results = untyped_results(kernel, bind(kernel.formula, arrays), dtype)
        found |= run(kernel, {**stored, **results}, table=table)[0]
    return found


def _phase_of(node: Node, bound: BoundOp) -> str:
    return next(str(phase) for phase, several in node.variant.bound if bound in several)


def _outline(value: Any) -> npt.NDArray[Any]:
    """An array of the shape and kind of a tensor, without its values."""
    import numpy as np

    return np.broadcast_to(np.zeros((), float if value.is_floating_point() else int), tuple(value.shape))


def _array(value: Any) -> npt.NDArray[Any]:
    """A NumPy array of a NumPy array, a torch tensor, or a nest of numbers."""
    import numpy as np

    if hasattr(value, "detach"):
        tensor = value.detach().cpu()
        return np.asarray(tensor.double().numpy() if tensor.is_floating_point() else tensor.numpy())
    return np.asarray(value)


def _operands(formula: Formula) -> str:
    from specc.formula_text import dims_text

    return "it takes " + ", ".join(f"{t.name}{dims_text(t.dims)}" for t in formula.inputs)


def _known(what: str, name: str, known: Sequence[str]) -> None:
    if name not in known:
        raise SpecError([Diagnostic("E505", f"there is no {what} `{name}`", None, nearest(name, known))])


def _check_options(**given: Any) -> None:
    """Raises SpecError (E505) for a value that is neither a name nor, of an option for one, a path."""
    for name, value in given.items():
        kinds = OPTIONS[name]
        if not isinstance(value, kinds):
            what = "a path" if PathLike in kinds else "a name"
            message = f"`{name}` is {what}, not a value of type `{type(value).__name__}`"
            operand = hasattr(value, "shape") or isinstance(value, Sequence)
            help_ = "operands with names of options go into a mapping, which stands before all options"
            raise SpecError([Diagnostic("E505", message, None, help_ if operand else "")])


def checked_tables(
    target: str, dtype: str, tiles: str | PathLike[str] | None, gpu: str | None
) -> Mapping[str, TileTable]:
    """The tile table of a target that has one. Raises SpecError for a type, file or GPU that there is not, also where
    they mean nothing to the target, as to the oracle."""
    _known("type", dtype, DTYPES)
    if target in ("triton", "cuda") and dtype not in GPU_DTYPES:
        stored = ", ".join(GPU_DTYPES)
        raise SpecError([Diagnostic("E505", f"{target} stores nothing in {dtype}", None, f"it stores {stored}")])
    own = None if tiles is None else Path(os.fsdecode(tiles))
    if own is not None:
        read_source(own)
    return tile_tables(own, gpu, (target,))


def _given(tensors: Mapping[str, Any] | None, named: Mapping[str, Any]) -> dict[str, Any]:
    """All operands. Raises SpecError (E507) for what is no mapping, and one that is given twice."""
    if not isinstance(tensors, Mapping | NoneType):
        message = f"operands go by their names, and a value of type `{type(tensors).__name__}` has none"
        raise SpecError([Diagnostic("E507", message, None, "give a mapping, or each operand as a keyword")])
    twice = [name for name in named if name in (tensors or {})]
    if twice:
        raise SpecError([Diagnostic("E507", f"operand `{twice[0]}` is given twice")])
    return {**(tensors or {}), **named}


class Spec:
    """A checked Model Spec."""

    def __init__(self, path: Path, syntax: SpecFile, model: Model) -> None:
        self.path, self.syntax, self.model = path, syntax, model

    def __repr__(self) -> str:
        return f"<Spec {self.key}@{self.version}>"

    @property
    def key(self) -> str:
        return self.model.key

    @property
    def version(self) -> str:
        return self.model.version

    @property
    def parameter_count(self) -> int:
        """Elements of all checkpoint tensors, each counted once."""
        return self.model.parameter_count

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """The rows of the node table, in its order."""
        return tuple(Node(self.model, variant) for variant in self.model.nodes)

    def node(self, key: str) -> Node:
        """The node that a Spec Key names, with or without the model before it. Raises SpecError, also for a key that
        names several variants."""
        found = resolve(self.model, key)
        if len(found) == 1:
            return Node(self.model, found[0])
        path = parse_key(key).node
        one = ", ".join(f"`layers[{v.layers[0]}].{path}`" for v in found if v.layers)
        raise SpecError(
            [Diagnostic("E508", f"`{key}` has other constants in other layers", None, f"write one of {one}")]
        )

    def reduced(self, **sizes: int) -> Spec:
        """The same model with named sizes replaced: `reduced(hidden=48, layers=6, sliding__D=8)`. What is written in
        terms of them follows. Raises SpecError."""
        from specc.reduce import reduce_spec

        smaller = reduce_spec(self.syntax, sizes)
        return Spec(self.path, smaller, pipeline.check(self.path, smaller))


def load(path: str | PathLike[str]) -> Spec:
    """Reads and checks a Model Spec; also one by its key, `google/gemma-4-31B`. Raises SpecError."""
    from specc.models import find_model

    file = find_model(str(path))
    syntax = pipeline.parse(file)
    return Spec(file, syntax, pipeline.check(file, syntax))


def build(
    path: str | PathLike[str],
    out: str | PathLike[str] = "generated",
    targets: Sequence[str] = TARGETS,
    tiles: str | PathLike[str] | None = None,
) -> Build:
    """Writes the files of a Model Spec (path or key) to `out/<its name>`, as `specc build` does. Raises SpecError."""
    from specc.models import find_model

    _check_options(out=out, tiles=tiles)
    for target in targets:
        _check_options(target=target)
        _known("target", target, TARGETS)
    options = Options(tuple(sorted(set(targets))), None if tiles is None else Path(os.fsdecode(tiles)))
    return pipeline.build(find_model(str(path)), Path(os.fsdecode(out)), options)
