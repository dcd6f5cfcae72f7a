"""Modules import only from groups left of their own, so that data flows one way."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from specc import build

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "specc"

GROUPS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("text", ("specc", "limits", "echo", "hygiene", "source", "diagnostics", "near", "codes", "resources", "syntax",
              "syntax_spec", "syntax_errors", "recovery", "gauge", "grammar", "parse", "parse_spec")),
    ("meaning", ("terms", "trees", "ops", "ir", "instantiate", "wellformed", "passes", "formula_text", "format",
                 "format_expr", "reduce", "typecheck", "library", "spec_key")),
    ("oracle", ("oracle",)),
    ("kernels", ("kernels", "lower", "lowered", "bounds")),
    ("files", ("targets", "tiles", "render", "storage", "archive", "manifest", "emit", "dump", "dump_kernel", "page",
               "compare", "compare_nodes")),
    ("evidence", ("evidence",)),
    ("commands", ("inputs", "pipeline", "ahead", "models", "api", "verify", "cli", "__main__")),
)  # fmt: skip
"""Left to right. `oracle` and `kernels` do not know each other."""
PLACE = {name: number for number, (_, names) in enumerate(GROUPS) for name in names}
BLIND = (("oracle", "kernels"), ("kernels", "oracle"))
HEAVY = ("torch", "triton", "sympy", "numpy", "mpmath", "hypothesis", "transformers")


def modules() -> list[Path]:
    return [p for p in sorted(PACKAGE.rglob("*.py")) if "_data" not in p.parts]


def top(path: Path) -> str:
    """The first name below `specc`."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return "specc" if parts == ("__init__",) else parts[0]


def imports(path: Path) -> list[str]:
    """Dotted names of everything that a module imports, wherever the import stands."""
    found: list[str] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [a.name for a in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found += [f"{node.module}.{a.name}" for a in node.names]
    return found


def own(name: str) -> str | None:
    """The name below `specc` that an import speaks of."""
    parts = name.split(".")
    if parts[0] != "specc":
        return None
    return parts[1] if len(parts) > 1 and parts[1] in PLACE else "specc"


def test_every_module_has_its_place() -> None:
    assert [str(p) for p in modules() if top(p) not in PLACE] == []


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_a_module_imports_from_its_left_only(path: Path) -> None:
    if top(path) == "specc":
        return
    mine = PLACE[top(path)]
    wrong = [name for name in imports(path) if (other := own(name)) is not None and PLACE[other] > mine]
    assert wrong == []


@pytest.mark.parametrize(("left", "right"), BLIND)
def test_the_oracle_and_lowering_share_nothing(left: str, right: str) -> None:
    mine, theirs = dict(GROUPS)[left], dict(GROUPS)[right]
    wrong = [(top(p), name) for p in modules() if top(p) in mine for name in imports(p) if own(name) in theirs]
    assert wrong == []


def test_targets_never_import_each_other() -> None:
    folders = sorted(p.name for p in (PACKAGE / "targets").iterdir() if (p / "__init__.py").is_file())
    assert len(folders) >= 2
    wrong = [
        (str(path), name)
        for folder in folders
        for path in sorted((PACKAGE / "targets" / folder).rglob("*.py"))
        for name in imports(path)
        for other in folders
        if other != folder and name.startswith(f"specc.targets.{other}")
    ]
    assert wrong == []


def test_one_module_knows_the_template_engine() -> None:
    assert [p.name for p in modules() if any(n.split(".")[0] == "jinja2" for n in imports(p))] == ["render.py"]


LIGHT = {
    "build": ["build", "specs/gemma4.spec", "--out", "{built}/again"],
    "rebuild": ["build", "specs/gemma4.spec", "--out", "{built}"],
    "drift": ["build", "specs/gemma4.spec", "--out", "{built}", "--check"],
    "show": ["show", "google/gemma-4-31B"],
    "config": ["config", "google/gemma-4-31B"],
    "fmt": ["fmt", "--check", "specs/gemma4.spec"],
    "list": ["list"],
    "diff": ["diff", "specs/gemma4.spec", "google/gemma-4-31B"],
}
TELL = "import sys; from specc.cli import run; s = run({!r}); print(s, sorted(m for m in {!r} if m in sys.modules))"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("generated")
    build(ROOT / "specs" / "gemma4.spec", out)
    return out


@pytest.mark.parametrize("command", LIGHT)
def test_reading_and_writing_specs_loads_no_heavy_library(command: str, built: Path) -> None:
    arguments = [a.format(built=built) for a in LIGHT[command]]
    done = subprocess.run(
        [sys.executable, "-c", TELL.format(arguments, HEAVY)], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert done.stdout.splitlines()[-1:] == ["0 []"], done.stdout[-2000:] + done.stderr[-2000:]


def test_the_package_alone_loads_nothing_else() -> None:
    tell = "import sys, specc; print(sorted(m for m in sys.modules if m.startswith('specc')), specc.__version__)"
    done = subprocess.run([sys.executable, "-c", tell], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.stdout.startswith("['specc'] ")
