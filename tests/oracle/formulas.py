"""Closed formulas and operands for tests."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from specc.instantiate import Value, instantiate
from specc.library import load_library
from specc.ops import Formula, Library, Num, Size, Sort
from specc.oracle import evaluate, uncertainty
from specc.parse import parse_ops
from specc.resources import shipped
from specc.source import Source
from specc.syntax import OpsFile
from specc.typecheck.ops import check_library

Array = npt.NDArray[Any]
MAGNITUDES = st.sampled_from([1e-4, 0.1, 1.0, 10.0])
SEEDS = st.integers(0, 2**32 - 1)
LEADS = st.lists(st.integers(0, 4), min_size=0, max_size=3).map(tuple)
HEADS = st.sampled_from([(1, 1), (2, 1), (4, 2), (5, 1), (6, 1), (7, 1), (8, 1), (16, 1), (10, 2), (3, 3), (16, 2)])
"""(heads, kv_heads): ratios 1, 2, 5, 6, 7, 8, 16 and all heads on one."""


def constant(value: Any) -> Value:
    """A number as an exact literal; labels and flags as they are."""
    if isinstance(value, bool | str):
        return value
    exact = Fraction(value)
    return Num(exact, Sort.INDEX if exact.denominator == 1 else Sort.REAL)


def close(
    op: str,
    constants: Mapping[str, Any] | None = None,
    lead: int = 0,
    given: tuple[str, ...] = (),
    library: Library | None = None,
) -> Formula:
    """The op with its constants put in and `lead` leading axes."""
    values = {name: constant(v) for name, v in (constants or {}).items()}
    axes = [(f"r{k}", Size(f"R{k}")) for k in range(lead)]
    return instantiate((library or load_library()).op(op), values, axes, given)


@cache
def library_of(text: str) -> Library:
    """The ops of a text."""
    return check_library([parse_ops(Source("test.ops", text))])


def formula_of(text: str, constants: Mapping[str, Any] | None = None, lead: int = 0) -> Formula:
    """The only op of a text, closed."""
    library = library_of(text)
    return close(library.ops[0].name, constants, lead, library=library)


@cache
def _shipped_files() -> tuple[OpsFile, ...]:
    return tuple(parse_ops(Source(name, text)) for name, text in shipped_texts())


def shipped_texts() -> tuple[tuple[str, str], ...]:
    """Names and texts of the shipped op libraries."""
    paths = sorted(Path(str(shipped("specs"))).joinpath("ops").glob("*.ops"))
    return tuple((p.name, p.read_text(encoding="utf-8")) for p in paths)


@cache
def beside_shipped(text: str) -> Library:
    """The shipped library together with the ops of a text."""
    return check_library([*_shipped_files(), parse_ops(Source("test.ops", text))])


class Draw:
    """Random operands of one seed and magnitude."""

    def __init__(self, seed: int, magnitude: float = 1.0) -> None:
        self.rng, self.magnitude = np.random.default_rng(seed), magnitude

    def __call__(self, *shape: int) -> Array:
        return self.magnitude * self.rng.standard_normal(shape)

    def unit(self, *shape: int) -> Array:
        """Between 0 and 1."""
        return self.rng.random(shape)

    def integers(self, low: int, high: int, *shape: int) -> Array:
        """From `low` to `high`, both included."""
        return self.rng.integers(low, high, shape, endpoint=True)


def assert_agree(formula: Formula, tensors: dict[str, Array], *expected: Array) -> None:
    """The oracle gives `expected` to 1e-12 and its own error bound, which is itself small beside the largest value."""
    found, bound = evaluate(formula, tensors), uncertainty(formula, tensors)
    for tensor, right in zip(formula.outputs, expected, strict=True):
        value, error = found[tensor.name], bound[tensor.name]
        assert value.shape == right.shape
        assert (error <= 1e-9 * np.abs(right).max(initial=1.0)).all()
        assert (np.abs(value - right) <= 1e-12 * np.abs(right) + 4 * error).all(), (value, right)
