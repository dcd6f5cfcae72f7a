"""Dumps of the stages are what they were, and the same on every run. `python -m tests.test_dump` writes them anew."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from specc.dump import dump_kernels, dump_model, dump_syntax
from specc.ir import Model
from specc.library import load_library
from specc.lower.lower import lower_node
from specc.parse import parse_ops
from specc.parse_spec import parse_spec
from specc.source import Source
from specc.typecheck.model import check_model
from tests.typecheck.mini import MINI

HERE = Path(__file__).parent
GEMMA = HERE.parent / "specs" / "gemma4.spec"


def gemma() -> Model:
    return check_model(parse_spec(Source("gemma4.spec", GEMMA.read_text(encoding="utf-8"))), load_library())


def mini() -> Model:
    return check_model(parse_spec(Source("mini.spec", MINI)), load_library())


GOLDEN: dict[str, Callable[[], str]] = {
    "mini.syntax.txt": lambda: dump_syntax(parse_spec(Source("mini.spec", MINI))),
    "mini.model.txt": lambda: dump_model(mini()),
    "gemma4.model.txt": lambda: dump_model(gemma()),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_a_dump_is_what_it_was(name: str) -> None:
    assert GOLDEN[name]() == (HERE / "golden" / name).read_text(encoding="utf-8")


def test_the_syntax_of_a_library_has_places() -> None:
    text = dump_syntax(parse_ops(Source("ops", "def f(x) = 2·x\n")))
    assert text == (
        'OpsFile 1:1\n  items:\n    Def 1:5\n      name = "f"\n      params:\n        Param 1:7\n          name = "x"\n'
        '          kind = "real"\n          optional = False\n      body = 1:12 2·x\n'
    )


def test_a_kernel_is_dumped_with_its_slots() -> None:
    model = mini()
    kernels = lower_node(model, model.variants("out")[0])
    text = dump_kernels(kernels)
    assert text.startswith("kernel out: row_reduction of rmsnorm, prefill\n")
    assert "  row i < 8\n" in text


def main() -> None:
    for name, text in GOLDEN.items():
        (HERE / "golden" / name).write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    main()
