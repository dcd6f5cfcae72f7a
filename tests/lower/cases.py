"""Ops with kernels, shipped ones and ones a user might write, and random operands for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from specc.evidence.tables import table_values
from specc.instantiate import Value, instantiate
from specc.kernels import Kernel
from specc.library import load_library
from specc.lower.lower import Setting, lower_formula
from specc.ops import Expr, Formula, Library, Num, Rounded, Size, Sort, rebuild
from specc.oracle import evaluate
from specc.parse import parse_ops
from specc.passes.rewrite import each
from specc.source import Source
from specc.typecheck.ops import check_library
from tests.lower.slots import Machine, value

Array = npt.NDArray[Any]
SCALARS = (
    "def sigmoid(x) = 1 / (1 + exp(-x)) computed as (if x ≥ 0 then 1 else exp(-abs(x))) / (1 + exp(-abs(x)))\n"
    "def silu(x) = x · sigmoid(x)\ndef relu(x) = max(x, 0)\ndef cap(c, x) = c · tanh(x / c)\n"
    "def freq(theta, D: nat, i: nat) = theta ^ -(2·i / D)\n"
)


@dataclass(frozen=True)
class Case:
    """An op with constants. `text` is empty for a shipped op; `lead` counts leading axes; `index` gives the inclusive
    range of an integer operand's values from the sizes; `schedule` is what the kernel must come out as."""

    name: str
    schedule: str
    constants: Mapping[str, Any] = field(default_factory=dict)
    text: str = ""
    op: str = ""
    lead: int = 0
    given: tuple[str, ...] = ()
    index: Mapping[str, Callable[[Mapping[str, int]], tuple[int, int]]] = field(default_factory=dict)

    def formula(self) -> Formula:
        library = library_of(self.text) if self.text else load_library()
        name = self.op or (library.ops[0].name if self.text else self.name)
        return closed(library, name, self.lead, self.given, self.constants)

    def kernel(self) -> Kernel:
        return lower_formula(self.formula(), Setting(self.name))


def library_of(text: str) -> Library:
    """The ops of a text, with a few scalar functions beside them."""
    return check_library([parse_ops(Source("user.ops", SCALARS + text))])


def constant(given: Any) -> Value:
    if isinstance(given, bool | str):
        return given
    exact = Fraction(given)
    return Num(exact, Sort.INDEX if exact.denominator == 1 else Sort.REAL)


def closed(library: Library, op: str, lead: int, given: tuple[str, ...], constants: Mapping[str, Any]) -> Formula:
    axes = [(f"r{k}", Size(f"R{k}")) for k in range(lead)]
    return instantiate(library.op(op), {n: constant(v) for n, v in constants.items()}, axes, given)


def formula_of(text: str, lead: int = 0, **constants: Any) -> Formula:
    """The first op of a text, closed."""
    library = library_of(text)
    names = [o.name for o in library.ops]
    return closed(library, min(names, key=lambda n: text.index(f"op {n}")), lead, (), constants)


def kernel_of(text: str, lead: int = 0, **constants: Any) -> Kernel:
    formula = formula_of(text, lead, **constants)
    return lower_formula(formula, Setting(formula.op))


def operands(formula: Formula, sizes: Mapping[str, int], seed: int, case: Case | None = None) -> dict[str, Array]:
    """Normal numbers, and integers in the ranges of the case (0 where it says nothing)."""
    rng, found = np.random.default_rng(seed), {}
    for t in formula.inputs:
        shape = [int(value(d, {}, sizes)) for d in t.dims]
        if t.sort is Sort.INDEX:
            low, high = case.index[t.name](sizes) if case and t.name in case.index else (0, 0)
            found[t.name] = rng.integers(low, max(high, low), shape, endpoint=True)
        else:
            found[t.name] = rng.standard_normal(shape)
    return found


def bare(formula: Formula) -> Formula:
    """`formula` without its roundings."""

    def visit(e: Expr) -> Expr:
        return visit(e.expr) if isinstance(e, Rounded) else rebuild(e, visit)

    return each(formula, visit)


def assert_same(found: Mapping[str, Array], right: Mapping[str, Array]) -> None:
    """Equal up to the rounding of float64, and NaN in the same places."""
    assert list(found) == list(right)
    for name, expected in right.items():
        scale = np.nanmax(np.abs(expected), initial=1.0)
        np.testing.assert_allclose(found[name], expected, rtol=1e-11, atol=1e-11 * scale, err_msg=name)


def assert_lowered(kernel: Kernel, tensors: Mapping[str, Array], sizes: Mapping[str, int]) -> None:
    """Definition, lowered formula and slots give the same numbers."""
    right = evaluate(kernel.formula, tensors, sizes)
    tables = {t.name: table_values(t) for t in kernel.tables}
    assert_same(evaluate(bare(kernel.lowered), {**tensors, **tables}, sizes), right)
    assert_same(Machine(kernel, tensors, sizes).run(), right)


def check(case: Case, sizes: Mapping[str, int], seed: int) -> None:
    kernel = case.kernel()
    assert kernel.schedule_name == case.schedule
    assert_lowered(kernel, operands(kernel.formula, sizes, seed, case), sizes)
