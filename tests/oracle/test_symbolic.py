"""The formula is the source: an edit of one sign, index or constant changes the oracle; the twin tells."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from specc.library import load_library
from specc.ops import Library
from specc.oracle import evaluate
from specc.parse import parse_ops
from specc.source import Source
from specc.typecheck.ops import check_library
from tests import twins
from tests.oracle.formulas import Array, Draw, close, shipped_texts


def edited(old: str, new: str, op: str) -> Library:
    """The shipped library with `old`, which stands once in one op or function, replaced; spacing is free."""
    pattern = re.compile(r"[ ]*".join(re.escape(c) for c in old.replace(" ", "")))
    head = re.compile(rf"^(op|def) {op}\(.*?(?=^$|\Z)", re.MULTILINE | re.DOTALL)
    done, files = 0, []
    for name, text in shipped_texts():
        block = head.search(text)
        if block is not None:
            changed, count = pattern.subn(new, block.group())
            done += count
            text = text[: block.start()] + changed + text[block.end() :]
        files.append(parse_ops(Source(name, text)))
    assert done == 1, (op, old, done)
    return check_library(files)


def _rmsnorm(draw: Draw) -> tuple[dict[str, Any], int, dict[str, Array], Array]:
    x, w = draw(3, 6), draw(6)
    return {"H": 6, "eps": 0.5}, 1, {"x": x, "w": w}, twins.rmsnorm(x, w, 0.5)


def _gelu(draw: Draw) -> tuple[dict[str, Any], int, dict[str, Array], Array]:
    gu = draw(3, 8)
    return {"I": 4}, 1, {"gu": gu}, twins.geluMul(gu)


def _rope(draw: Draw) -> tuple[dict[str, Any], int, dict[str, Array], Array]:
    x, pos = draw(3, 2, 10), np.array([1, 5, 9])
    constants = {"D": 10, "rot": 8, "denom": 8, "active": 3, "theta": 100}
    return constants, 0, {"x": x, "pos": pos}, twins.rope(x, pos, 8, 8, 3, 100)


def _sliding(draw: Draw) -> tuple[dict[str, Any], int, dict[str, Array], Array]:
    q, k, v, n = draw(3, 4, 2), draw(3, 9, 2, 2), draw(3, 9, 2, 2), np.array([1, 5, 8])
    constants = {"D": 2, "heads": 4, "kv_heads": 2, "scale": 0.5, "window": 3}
    right = twins.slidingDecodeGQA(q, k, v, n, 0.5, 3)
    return constants, 0, {"q": q, "k": k, "v": v, "seq_lens": n}, right


CASES: dict[str, Callable[[Draw], tuple[dict[str, Any], int, dict[str, Array], Array]]] = {
    "rmsnorm": _rmsnorm, "geluMul": _gelu, "rope": _rope, "slidingDecodeGQA": _sliding,
}  # fmt: skip

EDITS = [
    ("rmsnorm", "rmsnorm", "+ eps", "- eps / 9"),
    ("rmsnorm", "rmsnorm", "+ eps", ""),
    ("rmsnorm", "rmsnorm", "· w[i]", "· (1 + w[i])"),
    ("rmsnorm", "rmsnorm", "Σ_j x[.., j]²", "Σ_{j < H} x[.., i]²"),
    ("rmsnorm", "rmsnorm", "/ H", "/ (H + 1)"),
    ("geluMul", "geluTanh", "1 + tanh", "1 - tanh"),
    ("geluMul", "geluTanh", "0.044715 · x³)))", "-0.044715 · x³)))"),
    ("geluMul", "geluTanh", "0.044715 · x³)))", "0.044716 · x³)))"),
    ("geluMul", "geluMul", "gu[.., I + i]", "gu[.., i]"),
    ("rope", "rope", "cos(a[i]) - x", "cos(a[i]) + x"),
    ("rope", "rope", "x[t, h, i + rot // 2] · sin", "x[t, h, i + 1] · sin"),
    ("rope", "rope", "else x[t, h, i]", "else -x[t, h, i]"),
    ("rope", "invFreq", "i < active", "i < active - 1"),
    ("rope", "invFreq", "theta ^ -(", "theta ^ ("),
    ("slidingDecodeGQA", "slidingDecodeGQA", "seq_lens[b] - 1 - window <", "seq_lens[b] - window <"),
    ("slidingDecodeGQA", "slidingDecodeGQA", "seq_lens[b] - 1 - window <", "seq_lens[b] - 2 - window <"),
    ("slidingDecodeGQA", "slidingDecodeGQA", "l < seq_lens[b])", "l ≤ seq_lens[b])"),
    ("slidingDecodeGQA", "slidingDecodeGQA", "h // (heads // kv_heads)", "h % kv_heads"),
    ("slidingDecodeGQA", "slidingDecodeGQA", "scale · Σ_e", "-scale · Σ_e"),
]


def disagreement(library: Library, op: str) -> float:
    """The largest relative distance of the oracle from the twin."""
    constants, lead, tensors, right = CASES[op](Draw(1))
    (found,) = evaluate(close(op, constants, lead, library=library), tensors).values()
    return float((np.abs(found - right) / np.abs(right).max()).max())


@pytest.mark.parametrize(("op", "where", "old", "new"), EDITS, ids=lambda x: x.strip())
def test_an_edited_formula_moves_the_oracle_away_from_the_twin(op: str, where: str, old: str, new: str) -> None:
    assert disagreement(edited(old, new, where), op) > 1e-8


@pytest.mark.parametrize("op", CASES)
def test_the_shipped_formula_agrees_with_the_twin(op: str) -> None:
    assert disagreement(load_library(), op) < 1e-13


def test_the_oracle_does_not_read_the_computed_form() -> None:
    """An edit there alone leaves its values as they are, to the bit."""
    constants, lead, tensors, _ = CASES["geluMul"](Draw(1))
    wrong = edited("computed as x · sigmoid(2", "computed as x · sigmoid(3", "geluTanh")
    found = evaluate(close("geluMul", constants, lead, library=wrong), tensors)["y"]
    np.testing.assert_array_equal(found, evaluate(close("geluMul", constants, lead), tensors)["y"])
