"""Closed formulas of the shipped library and operands for them, at sizes that fit in a test."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from specc.instantiate import Value, instantiate
from specc.library import load_library
from specc.ops import Expr, Formula, Lead, Library, Num, Size, Sort

LEADING: tuple[tuple[str, Expr], ...] = (("t", Size("T")), ("h", Size("Hn")))
LENGTHS = {"T": 5, "Hn": 3, "B": 3, "L": 9, "S": 9, "V": 11, "Hk": 2, "Hv": 6, "Dk": 4, "Dv": 5, "C": 3, "K": 4}

CONSTANTS: dict[str, dict[str, int | str]] = {
    "causalConvSilu": {},
    "causalConvSiluFrom": {"W": 3},
    "causalConvSiluStep": {"W": 3},
    "causalGQA": {"D": 8, "heads": 6, "kv_heads": 2, "scale": "0.3"},
    "decodeGQA": {"D": 8, "heads": 6, "kv_heads": 3, "scale": "0.3"},
    "embed": {"H": 6, "mul": "2.449", "V": 11},
    "gateUp": {"K": 6, "I": 5},
    "gatedDeltaRule": {},
    "gdnGates": {"H": 6},
    "gdnState": {},
    "gdnStep": {},
    "geluMul": {"I": 5},
    "l2norm": {"D": 7, "eps": "1e-6"},
    "linear": {"K": 7, "N": 5},
    "lmHead": {"K": 6, "N": 9, "mul": "0.5", "softcap": 30},
    "residual": {"H": 6, "r": "0.22"},
    "rmsnorm": {"H": 7, "eps": "1e-6"},
    "rmsnormGated": {"H": 7, "eps": "1e-6"},
    "rmsnormOffset": {"H": 7, "eps": "1e-6"},
    "rmsnormUnit": {"H": 7, "eps": "1e-6"},
    "rope": {"D": 12, "rot": 8, "denom": 8, "active": 3, "theta": 10000},
    "scaled": {"H": 6, "mul": "0.3"},
    "sigmoidGate": {"N": 6},
    "siluMul": {"I": 5},
    "slidingDecodeGQA": {"D": 8, "heads": 6, "kv_heads": 2, "scale": "0.3", "window": 3},
    "slidingGQA": {"D": 8, "heads": 6, "kv_heads": 2, "scale": "0.3", "window": 3},
    "softmax": {},
}
"""Constants for every op of the library."""


def constants(op: str, **changes: object) -> dict[str, Value]:
    """The op's constants as expressions; real ones are given as text or through `changes`."""
    found: dict[str, Value] = {}
    for name, value in {**CONSTANTS[op], **changes}.items():
        if isinstance(value, bool):
            found[name] = value
        elif isinstance(value, int):
            found[name] = Num(Fraction(value), Sort.INDEX)
        else:
            found[name] = Num(Fraction(str(value)))
    return found


def formula_of(
    op: str,
    library: Library | None = None,
    given: tuple[str, ...] = (),
    lead: tuple[tuple[str, Expr], ...] = LEADING,
    **changes: object,
) -> Formula:
    """A closed formula with two leading axes where the op takes any number."""
    found = (library or load_library()).op(op)
    leads = any(isinstance(d, Lead) for t in found.inputs for d in t.dims)
    return instantiate(found, constants(op, **changes), lead if leads else (), given)


def sizes_of(formula: Formula, **lengths: int) -> dict[str, int]:
    names = [d.name for t in formula.inputs for d in t.dims if isinstance(d, Size)]
    return {n: {**LENGTHS, "H": 6, "N": 9, **lengths}[n] for n in names}


def operands(
    formula: Formula, seed: int = 0, indices: Mapping[str, Any] | None = None, **lengths: int
) -> dict[str, np.ndarray[Any, Any]]:
    """Normal numbers for reals; `indices` gives the integer operands, which are small numbers otherwise."""
    rng = np.random.default_rng(seed)
    sizes = sizes_of(formula, **lengths)
    found: dict[str, np.ndarray[Any, Any]] = {}
    for t in formula.inputs:
        shape = [sizes[d.name] if isinstance(d, Size) else int(d.value) for d in t.dims]  # type: ignore[union-attr]
        if t.sort is Sort.INDEX:
            given = (indices or {}).get(t.name)
            found[t.name] = rng.integers(1, 9, shape) if given is None else np.asarray(given)
        else:
            found[t.name] = rng.normal(size=shape)
    return found
