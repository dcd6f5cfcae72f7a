"""The shipped op library, and a user's own beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from specc.diagnostics import SpecError
from specc.library import load_library

OWN = "def twice(x) = 2·x\n\nop double(x[.., H]; H: nat) -> y[.., H]\n  y[.., i] = twice(silu(x[.., i]))\n"
SHIPPED = (
    "causalConvSilu", "causalConvSiluFrom", "causalConvSiluStep", "causalGQA", "decodeGQA", "embed", "gateUp",
    "gatedDeltaRule", "gdnGates", "gdnState", "gdnStep", "geluMul", "l2norm", "linear", "lmHead", "residual",
    "rmsnorm", "rmsnormGated", "rmsnormOffset", "rmsnormUnit", "rope", "scaled", "sigmoidGate", "siluMul",
    "slidingDecodeGQA", "slidingGQA", "softmax",
)  # fmt: skip


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_the_library_holds_the_ops_of_the_founding_pages() -> None:
    assert tuple(o.name for o in load_library().ops) == SHIPPED
    scalars = {"geluTanh", "invFreq", "sigmoid", "silu", "softcap", "softplus"}
    assert scalars <= {d.name for d in load_library().defs}


def test_a_users_op_uses_shipped_functions(tmp_path: Path) -> None:
    library = load_library([write(tmp_path, "own.ops", OWN)])
    assert library.op("double").inputs[0].name == "x"
    assert library.scalar("twice").name == "twice"
    assert set(SHIPPED) < {o.name for o in library.ops}
    assert "double" not in {o.name for o in load_library().ops}


def test_files_may_use_each_other_in_any_order(tmp_path: Path) -> None:
    one = write(tmp_path, "a.ops", "def f(x) = g(x) + 1\n")
    two = write(tmp_path, "b.ops", "def g(x) = silu(x)\n")
    assert load_library([one, two]) == load_library([two, one])


def test_a_name_that_is_taken_is_shown_with_its_first_place(tmp_path: Path) -> None:
    own = write(tmp_path, "own.ops", "op rmsnorm(x[H]) -> y[H]\n  y[i] = x[i]\n")
    with pytest.raises(SpecError) as caught:
        load_library([own])
    (found,) = caught.value.diagnostics
    assert found.code == "E320"
    assert "first defined at specs/ops/norms.ops:" in found.help
    assert found.span is not None and found.span.source.name == str(own)


def test_a_file_that_is_not_there_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(OSError):
        load_library([tmp_path / "none.ops"])


def test_an_unknown_op_or_function_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        load_library().op("rmsnorn")
    with pytest.raises(KeyError):
        load_library().scalar("sulu")
