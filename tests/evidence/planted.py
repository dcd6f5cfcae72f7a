"""Wrong kernels: the definition of one op, computed by the schedule or text of another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

from specc.instantiate import Value, instantiate
from specc.kernels import Kernel
from specc.lower.lower import Setting, lower_formula
from specc.ops import Library, Num, Size, Sort
from specc.parse import parse_ops
from specc.source import Source
from specc.typecheck.ops import check_library

OPS = Path(__file__).parents[2] / "specs" / "ops"


def library(edit: Callable[[str], str] = lambda text: text) -> Library:
    """The shipped library with its text edited."""
    return check_library([parse_ops(Source(p.name, edit(p.read_text("utf-8")))) for p in sorted(OPS.glob("*.ops"))])


def swap(old: str, new: str) -> Callable[[str], str]:
    """Replaces `old`, which must stand in some file of the library."""
    whole = "".join(p.read_text("utf-8") for p in sorted(OPS.glob("*.ops")))
    assert old in whole, f"{old!r} is nowhere in the library"
    return lambda text: text.replace(old, new)


def nat(value: int) -> Num:
    return Num(Fraction(value), Sort.INDEX)


def real(text: str) -> Num:
    return Num(Fraction(text))


ROWS = (("t", Size("T")),)


@dataclass(frozen=True)
class Node:
    """An op with constants, as a node would have it."""

    op: str
    values: Mapping[str, Value]
    lead: tuple[tuple[str, Size], ...] = ROWS

    def kernel(self, ops: Library) -> Kernel:
        formula = instantiate(ops.op(self.op), self.values, self.lead)
        from specc.ir import Role

        roles = {t.name: Role.WEIGHT for t in formula.inputs if t.name in ("w", "wg", "wu")}
        roles |= {t.name: Role.CACHE for t in formula.inputs if t.name in ("k", "v")}
        roles |= {t.name: Role.INDEX for t in formula.inputs if t.sort is Sort.INDEX}
        full = {t.name: roles.get(t.name, Role.ACTIVATION) for t in (*formula.inputs, *formula.outputs)}
        return lower_formula(formula, Setting(self.op.lower(), "prefill", (), full))


def planted(node: Node, edit: Callable[[str], str]) -> Kernel:
    """The kernel of the edited op under the definition of the shipped one."""
    right, wrong = node.kernel(library()), node.kernel(library(edit))
    return replace(wrong, formula=right.formula, lowered=right.lowered)


HEADS = {"D": nat(64), "heads": nat(4), "kv_heads": nat(2), "scale": real("1")}
NODES = {
    "rmsnorm": Node("rmsnorm", {"H": nat(257), "eps": real("1e-6")}),
    "rmsnormOffset": Node("rmsnormOffset", {"H": nat(257), "eps": real("1e-6")}),
    "l2norm": Node("l2norm", {"D": nat(128), "eps": real("1e-6")}),
    "lmHead": Node("lmHead", {"K": nat(200), "N": nat(130), "mul": real("0.5"), "softcap": real("30")}),
    "linear": Node("linear", {"K": nat(200), "N": nat(130)}),
    "geluMul": Node("geluMul", {"I": nat(300)}),
    "residual": Node("residual", {"H": nat(300)}),
    "rope": Node("rope", {n: nat(v) for n, v in (("Hn", 3), ("D", 64), ("rot", 64), ("denom", 64), ("active", 8))}
                 | {"theta": real("1e6")}, ()),
    "decodeGQA": Node("decodeGQA", HEADS, ()),
    "causalGQA": Node("causalGQA", HEADS, ()),
    "slidingDecodeGQA": Node("slidingDecodeGQA", {**HEADS, "window": nat(96)}, ()),
    "slidingGQA": Node("slidingGQA", {**HEADS, "window": nat(96)}, ()),
}  # fmt: skip

FORMULA_FAULTS: dict[str, tuple[str, str, str]] = {
    "w replaced by 1 + w": ("rmsnorm", "  y[.., i] = n[i] · w[i]", "  y[.., i] = n[i] · (1 + w[i])"),
    "eps missing": ("rmsnorm", "/ H + eps)", "/ H)"),
    "eps on the sum": ("rmsnorm", "√(Σ_j x[.., j]² / H + eps)", "√((Σ_j x[.., j]² + eps) / H)"),
    "window one shorter, decode": ("slidingDecodeGQA", "seq_lens[b] - 1 - window < l", "seq_lens[b] - window < l"),
    "window one longer, decode": ("slidingDecodeGQA", "seq_lens[b] - 1 - window < l", "seq_lens[b] - 2 - window < l"),
    "window one shorter, prefill": ("slidingGQA", "pos[t] - window < l", "pos[t] - window + 1 < l"),
    "window one longer, prefill": ("slidingGQA", "pos[t] - window < l", "pos[t] - window - 1 < l"),
    "last key unseen": ("decodeGQA", "| l < seq_lens[b])", "| l < seq_lens[b] - 1)"),
    "future key seen": ("causalGQA", "| l ≤ pos[t])", "| l ≤ pos[t] + 1)"),
    "softcap before the multiplier": (
        "lmHead",
        "softcap(softcap, z[n])",
        "mul · softcap(softcap, z[n] / mul)",
    ),
    "KV head by %": ("decodeGQA", "h // (heads // kv_heads)", "h % kv_heads"),
    "KV head by %, prefill": ("causalGQA", "h // (heads // kv_heads)", "h % kv_heads"),
    "tanh GELU that overflows": (
        "geluMul",
        "x · sigmoid(2 · √(2/π) · (x + 0.044715 · x³))",
        "1/2 · x · (1 + (exp(2 · √(2/π) · (x + 0.044715 · x³)) - 1) / (exp(2 · √(2/π) · (x + 0.044715 · x³)) + 1))",
    ),
    "rope pairs i with i + active": ("rope", "i + rot // 2", "i + active"),
    "activation on the second half": (
        "geluMul",
        "geluTanh(gu[.., i]) · gu[.., I + i]",
        "gu[.., i] · geluTanh(gu[.., I + i])",
    ),
    "residual subtracted": ("residual", "else x[.., i] + r · h[.., i]", "else x[.., i] - r · h[.., i]"),
}

Swaps = tuple[tuple[str, str], ...]

STORE = "    tl.store(y_row + i,"
DOT = 'acc = tl.dot(x, w, acc, input_precision="ieee")'
TEXT_FAULTS: dict[str, tuple[str, Swaps]] = {
    "padded lanes in the mean": ("rmsnorm", (("other=0.0", "other=1.0"), ("tl.where(i_in, x * x, 0.0)", "x * x"))),
    "TF32 products": ("linear", (('"ieee"', '"tf32"'),)),
    "bfloat16 accumulator": ("linear", ((DOT, f"{DOT}.to(tl.bfloat16).to(tl.float32)"),)),
    "last K tile dropped": ("linear", (("range(0, 200, BLOCK_K)", "range(0, 200 - BLOCK_K, BLOCK_K)"),)),
    "input overwritten": (
        "rmsnorm",
        ((STORE, f"    tl.store(x_row + i, y.to(x_ptr.dtype.element_ty), mask=t_in & i_in)\n{STORE}"),),
    ),
    "1 + w formed in storage": (
        "rmsnormOffset",
        (("(1.0 + w)", "(1.0 + w).to(w_ptr.dtype.element_ty).to(tl.float32)"),),
    ),
    "finite mask sentinel, decode": ("decodeGQA", (('float("-inf")', "-1.0e4"),)),
    "finite mask sentinel, prefill": ("slidingGQA", (('float("-inf")', "-1.0e4"),)),
    "rows that another row's NaN reaches": (
        "causalGQA",
        (('if tl.abs(tl.sum(acc)) < float("inf"):', "if first >= 0:"),),
    ),
    "parts merged over the largest score of the first": (
        "decodeGQA",
        (("largest = tl.max(top, 0)", "largest = tl.load(tops_ptr + (part - tl.arange(0, SPLITS)))"),),
    ),
    "rows past the end": ("residual", (("element_ty), mask=t_in & i_in)", "element_ty), mask=i_in)"),)),
    "a row written twice": (
        "rmsnorm",
        ((STORE, f"    tl.store(y_row + i, y.to(y_ptr.dtype.element_ty), mask=t_in & i_in)\n{STORE}"),),
    ),
}
"""Faults of the machine, planted in the generated text: what stands there, and what is put there."""


def planted_text(node: Node, swaps: Swaps) -> tuple[Kernel, str]:
    """The right kernel, and its generated file with the faults in it."""
    from specc.targets.triton.emit import emit

    kernel = node.kernel(library())
    text = emit(kernel)
    for old, new in swaps:
        assert old in text, f"{old!r} is nowhere in the generated file"
        text = text.replace(old, new)
    return kernel, text
