"""Kernels and stored operands for the tests of bounds."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from specc.bounds import Bound, Numerics, bound, round_to, triton
from specc.bounds.formats import Array
from specc.instantiate import instantiate
from specc.kernels import Kernel
from specc.library import load_library
from specc.lower.lower import Setting, lower_formula
from specc.ops import Num, Size, Sort
from specc.parse import parse_ops
from specc.source import Source
from specc.typecheck.ops import check_library

TOKENS = (("t", Size("T")),)


def kernel(
    op: str,
    nats: Mapping[str, int] | None = None,
    reals: Mapping[str, Any] | None = None,
    *,
    lead: tuple[Any, ...] = (),
    rounds: tuple[tuple[str, str, str], ...] = (),
    given: tuple[str, ...] = (),
    flags: Mapping[str, bool] | None = None,
    text: str | None = None,
) -> Kernel:
    """The kernel of a shipped op, or of the one op of `text`."""
    library = load_library() if text is None else check_library((parse_ops(Source("test.ops", text)),))
    values: dict[str, Any] = {k: Num(Fraction(v), Sort.INDEX) for k, v in (nats or {}).items()}
    values |= {k: Num(Fraction(v)) for k, v in (reals or {}).items()} | dict(flags or {})
    formula = instantiate(library.op(op), values, lead, given)
    return lower_formula(formula, Setting(op, rounds=rounds))


def storage(dtype: str) -> dict[str, str]:
    return {"weight": dtype, "activation": dtype, "cache": dtype, "accumulator": "float32"}


def bound_of(k: Kernel, tensors: Mapping[str, Any], dtype: str, numerics: Numerics | None = None, **more: Any) -> Bound:
    """The bound of the only output of `k`."""
    tables = tuple(t.name for t in k.tables)
    found = bound(k.lowered, tensors, numerics or triton(storage(dtype)), tables=tables, **more)
    (only,) = found.values()
    return only


def normal(rng: np.random.Generator, *shape: int, dtype: str = "float32", scale: float = 1.0) -> Array:
    """Normal numbers that `dtype` holds."""
    return round_to(scale * rng.standard_normal(shape), dtype)


def cut(x: Array, bits: int) -> Array:
    """`x` rounded to `bits` significant bits (11: what TF32 keeps of an operand)."""
    mantissa, exponent = np.frexp(x)
    return np.ldexp(np.rint(np.ldexp(mantissa, bits)), exponent - bits)
