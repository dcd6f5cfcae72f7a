"""The `torch` target: files of a reference model, and the same printed functions run on their own."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from specc.formula_text import dims_text, snake
from specc.ir import Model, Role
from specc.lowered import Lowered
from specc.ops import Formula, FormulaTensor, Num, Size, Sort
from specc.render import render
from specc.targets.torch.files import model_files, module_text
from specc.targets.torch.function import print_formula
from specc.targets.torch.nodes import rounds_of
from specc.targets.torch.scalars import Function, Helpers

if TYPE_CHECKING:
    import torch

Rounds = tuple[tuple[str, str, Role], ...]
"""The rounding profile's (op or `softmax`, let or constant, role)."""


name = "torch"


def emit_model(model: Model, lowered: Sequence[Lowered], tiles: Path | None = None) -> Mapping[str, str]:
    """As `emit`: the reference needs neither kernels nor tiles."""
    return emit(model)


def emit(model: Model) -> dict[str, str]:
    """The files of the reference model by their names under the target's folder. Raises SpecError (E410)."""
    return model_files(model)


def source_of(formula: Formula, roles: Mapping[str, Role], rounds: Rounds = ()) -> tuple[Function, str]:
    """The printed function of one formula, and a module text with it and all it calls."""
    helpers = Helpers()
    name = helpers.owner = helpers.names.fresh(snake(formula.op))
    printed = print_formula(formula, roles, name, helpers, rounds_of(formula.op, rounds))
    functions = [*helpers.scalars.values(), *helpers.tables.values(), printed]
    return printed, module_text(f"`{formula.op}` on its own.", functions)


def run_node(
    formula: Formula,
    roles: Mapping[str, Role],
    tensors: Mapping[str, Any],
    dtype: str | torch.dtype,
    rounds: Rounds = (),
) -> dict[str, torch.Tensor]:
    """The results of the printed function of `formula`, by name.

    `tensors`: a torch tensor or NumPy array for each input; those that hold reals are rounded to the storage type
    `dtype` (float64, float32, bfloat16 or float16) first. Arithmetic is done in float64 for float64 and in float32
    otherwise; results come in `dtype`. What has the role of an accumulator is stored in the type of the arithmetic.
    Raises ValueError when operands do not fit the formula.
    """
    import torch

    stored = getattr(torch, dtype) if isinstance(dtype, str) else dtype
    names = tuple(sorted(roles.items()))
    function, runtime = _compiled(formula, names, rounds)
    precision = runtime.Precision.storing(stored)
    kept = {n for n, role in roles.items() if role is Role.ACCUMULATOR}
    operands = [_operand(t, tensors, precision.accumulator if t.name in kept else stored) for t in formula.inputs]
    _check_shapes(formula, operands)
    results = function(*operands, precision)
    listed = results if isinstance(results, tuple) else (results,)
    return {t.name: r for t, r in zip(formula.outputs, listed, strict=True)}


@cache
def _runtime() -> ModuleType:
    return _module("specc_torch_runtime", render("torch/runtime.py.j2"))


def _module(name: str, text: str, **names: object) -> ModuleType:
    module = ModuleType(name)
    module.__dict__.update(names)
    sys.modules[name] = module
    exec(compile(text, f"<{name}>", "exec"), module.__dict__)
    return module


@cache
def _compiled(formula: Formula, roles: tuple[tuple[str, Role], ...], rounds: Rounds) -> tuple[Any, ModuleType]:
    printed, text = source_of(formula, dict(roles), rounds)
    runtime = _runtime()
    shared = {n: getattr(runtime, n) for n in ("Precision", "masked_softmax", "rounded", "weighted_sum")}
    module = _module(f"specc_torch_{printed.name}_{sha256(text.encode()).hexdigest()[:12]}", text, **shared)
    return getattr(module, printed.name), runtime


def _operand(t: FormulaTensor, tensors: Mapping[str, Any], stored: torch.dtype) -> torch.Tensor:
    import torch

    if t.name not in tensors:
        raise ValueError(f"operand `{t.name}` {dims_text(t.dims)} is missing")
    found = torch.as_tensor(tensors[t.name])
    return found if t.sort is Sort.INDEX else found.to(stored)


def _check_shapes(formula: Formula, operands: Sequence[torch.Tensor]) -> None:
    sizes: dict[str, int] = {}
    for t, operand in zip(formula.inputs, operands, strict=True):
        if len(t.dims) != operand.dim():
            raise ValueError(f"operand `{t.name}` has {operand.dim()} axes, {dims_text(t.dims)} has {len(t.dims)}")
        for dim, n in zip(t.dims, operand.shape, strict=True):
            known = (
                int(dim.value)
                if isinstance(dim, Num)
                else sizes.setdefault(dim.name, n)
                if isinstance(dim, Size)
                else n
            )
            if known != n:
                raise ValueError(f"operand `{t.name}` is {list(operand.shape)}, its formula says {dims_text(t.dims)}")


def load(path: Path) -> ModuleType:
    """The generated package in folder `path`, imported under a name of its own: its `model`, `nodes` and `runtime` are
    attributes. Raises FileNotFoundError when there is none."""
    init = path / "__init__.py"
    if not init.is_file():
        raise FileNotFoundError(f"{path} has no generated PyTorch model")
    name = f"specc_generated_{sha256(str(path.resolve()).encode()).hexdigest()[:12]}"
    for known in [m for m in sys.modules if m == name or m.startswith(name + ".")]:
        del sys.modules[known]
    spec = importlib.util.spec_from_file_location(name, init, submodule_search_locations=[str(path)])
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
