"""Every op of the library that a schedule takes, at small sizes."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from tests.lower.cases import Case

HEADS = ((1, 1), (2, 1), (4, 2), (5, 1), (6, 1), (7, 1), (8, 1), (16, 1), (10, 2), (3, 3), (16, 2))
"""(heads, kv_heads): ratios 1, 2, 5, 6, 7, 8, 16, and all heads on one."""

POS = {"pos": lambda n: (0, n["L"] - 1)}
LENGTHS = {"seq_lens": lambda n: (0, n["S"])}


def norms() -> list[Case]:
    plain = [
        Case(op, "row_reduction", {"H": h, "eps": Fraction("1e-6")}, lead=lead)
        for op in ("rmsnorm", "rmsnormOffset", "rmsnormUnit", "rmsnormGated")
        for h, lead in ((1, 1), (3, 2), (8, 0))
    ]
    return [*plain, Case("l2norm", "row_reduction", {"D": 5, "eps": Fraction("1e-6")}, lead=2)]


def pointwise() -> list[Case]:
    rope = {"Hn": 2, "D": 10, "denom": 8, "theta": 10000}
    conv = [Case("causalConvSilu", "pointwise", {"K": k, "C": 3}) for k in (1, 2, 4)]
    turns = [
        Case("rope", "pointwise", {**rope, "rot": rot, "active": active}, index={"pos": lambda n: (0, 300000)})
        for rot, active in ((8, 4), (10, 2), (2, 1), (10, 5), (6, 0))
    ]
    return [
        Case("siluMul", "pointwise", {"I": 5}, lead=1),
        Case("geluMul", "pointwise", {"I": 5}, lead=2),
        Case("sigmoidGate", "pointwise", {"N": 6}, lead=1),
        Case("residual", "pointwise", {"H": 4, "r": Fraction("0.5")}, lead=1),
        Case("residual", "pointwise", {"H": 4, "layer_scalar": True}, lead=1, given=("s",)),
        Case("embed", "gather", {"V": 7, "H": 3, "mul": Fraction("2.5")}, lead=1, index={"tokens": lambda n: (0, 6)}),
        Case("gdnGates", "pointwise", {"H": 4}, lead=1),
        Case("scaled", "pointwise", {"H": 4, "mul": Fraction("0.3")}, lead=2),
        *conv,
        *turns,
    ]


def rows() -> list[Case]:
    return [
        Case("embed", "row_reduction", {"V": 7, "H": 3, "norm": True, "eps": Fraction("1e-6")}, lead=1,
             index={"tokens": lambda n: (0, 6)}),
        Case("softmax", "row_reduction", {"L": 5}, lead=1, index={"n": lambda n: (0, 5)}),
        Case("gdnStep", "row_reduction", {"Hv": 4, "Hk": 2, "Dk": 3, "Dv": 2}),
        Case("gdnStep", "row_reduction", {"Hv": 3, "Hk": 3, "Dk": 1, "Dv": 5}),
    ]  # fmt: skip


def contractions() -> list[Case]:
    return [
        Case("linear", "contraction", {"K": 5, "N": 3}, lead=1),
        Case("linear", "contraction", {"K": 1, "N": 1}, lead=2),
        Case("gateUp", "contraction", {"K": 4, "I": 3}, lead=1),
        Case("lmHead", "contraction", {"K": 4, "N": 6, "mul": Fraction("0.5"), "softcap": 30}, lead=1),
        Case("lmHead", "contraction", {"K": 4, "N": 6}, lead=1),
    ]


def attention() -> list[Case]:
    def case(op: str, heads: int, kv_heads: int, **more: Any) -> Case:
        constants: Mapping[str, Any] = {"D": 3, "heads": heads, "kv_heads": kv_heads, "scale": Fraction("0.5"), **more}
        if "Decode" in op or "decode" in op:
            return Case(op, "attention_decode", constants, index=LENGTHS)
        return Case(op, "attention_prefill", constants, index=POS)

    plain = [case(op, *hk) for op in ("causalGQA", "decodeGQA") for hk in HEADS]
    return plain + [
        case(op, *hk, window=w)
        for op in ("slidingGQA", "slidingDecodeGQA")
        for hk, w in zip(HEADS, (1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3), strict=True)
    ]


def recurrences() -> list[Case]:
    return [
        Case("gatedDeltaRule", "recurrence", {"Hv": 4, "Hk": 2, "Dk": 3, "Dv": 2}),
        Case("gatedDeltaRule", "recurrence", {"Hv": 3, "Hk": 3, "Dk": 1, "Dv": 5}, given=("S0",)),
    ]


SHIPPED = (*norms(), *pointwise(), *rows(), *contractions(), *attention(), *recurrences())
