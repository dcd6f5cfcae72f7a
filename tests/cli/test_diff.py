"""`specc diff`: what it prints, and its exit status."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from specc.cli import run
from specc.cli.diff import KEPT, LONG, change_lines, short_text
from specc.compare import Change, Kind
from specc.limits import MAX_BYTES
from specc.resources import shipped
from tests.builds.disks import limited

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
GEMMA = shipped("specs") / "gemma4.spec"
KEY = "example/tiny@1.0"
ONLY, OTHER = "only formatting differs", "other order or wording, same values"
Diff = Callable[..., tuple[int, str, str]]


@pytest.fixture
def specs(tmp_path: Path) -> tuple[Path, Path]:
    """The small example twice, each with its own op library."""
    for side in ("old", "new"):
        (tmp_path / side).mkdir()
        for name in ("tiny.spec", "own.ops"):
            (tmp_path / side / name).write_text((EXAMPLES / name).read_text())
    return tmp_path / "old" / "tiny.spec", tmp_path / "new" / "tiny.spec"


@pytest.fixture
def diff(capsys: pytest.CaptureFixture[str]) -> Diff:
    """`specc diff ARGUMENTS`: exit status, standard output, standard error."""

    def call(*arguments: object) -> tuple[int, str, str]:
        capsys.readouterr()
        status = run(["diff", *map(str, arguments)])
        out, err = capsys.readouterr()
        return status, out, err

    return call


def edit(path: Path, *edits: tuple[str, str]) -> None:
    text = path.read_text()
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    path.write_text(text)


def test_a_changed_constant_is_one_line_with_the_files_that_it_touches(diff: Diff, specs: tuple[Path, Path]) -> None:
    edit(specs[1], ("scale=1/8", "scale=1/4"))
    assert diff(*specs) == (
        1,
        f"{KEY}:layers[*].attn.core scale: 0.125 → 0.25\n"
        "  rewritten  README.md\n"
        "  rewritten  cuda/attn_core_decode.cu\n"
        "  rewritten  cuda/attn_core_prefill.cu\n"
        "  rewritten  torch/nodes/attn.py\n"
        "  rewritten  triton/attn_core_decode.py\n"
        "  rewritten  triton/attn_core_prefill.py\n",
        "",
    )


def test_another_writing_is_one_line_and_status_0(diff: Diff, specs: tuple[Path, Path]) -> None:
    edit(specs[1], ("hidden = 96", "hidden   =  96 # as before"))
    assert diff(*specs) == (0, "same meaning: only formatting differs\n", "")


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("tiny.spec", "hidden = 96", "hidden = 2·48"),
        ("tiny.spec", "scale=1/8", "scale=0.125"),
        ("tiny.spec", "scale=1/8", "scale=√(1/64)"),
        ("own.ops", "√(v + eps)", "√((v + eps))"),
        ("own.ops", "let v ", "let va "),
    ],
)
def test_another_wording_is_not_taken_for_formatting(
    diff: Diff, specs: tuple[Path, Path], file: str, old: str, new: str
) -> None:
    edit(specs[1].with_name(file), (old, new), *([("(v +", "(va +")] if new == "let va " else []))
    status, out, _ = diff(*specs)
    formatting = new == "√((v + eps))"
    assert status == 0
    assert out.splitlines()[0] == f"same meaning: {ONLY if formatting else OTHER}"


def test_states_in_another_order_are_not_taken_for_formatting(diff: Diff, specs: tuple[Path, Path]) -> None:
    edit(specs[1], ("  k_cache[S", "HERE"), ("  v_cache[S", "  k_cache[S"), ("HERE", "  v_cache[S"))
    assert diff(*specs)[1].splitlines()[0] == f"same meaning: {OTHER}"


def test_a_size_written_as_its_number_is_not_taken_for_formatting(diff: Diff, specs: tuple[Path, Path]) -> None:
    edit(specs[0], ("scale=1/8", "scale=1/√D"))
    edit(specs[1], ("scale=1/8", "scale=1/√32"))
    assert diff(*specs) == (0, f"same meaning: {OTHER}\n", "")


def test_another_form_of_one_number_is_said_to_be_that(diff: Diff, specs: tuple[Path, Path]) -> None:
    edit(specs[0], ("scale=1/8", "scale=1/√6"))
    edit(specs[1], ("scale=1/8", "scale=√6/6"))
    status, out, _ = diff(*specs)
    line = f"{KEY}:layers[*].attn.core scale: 1 / √6 → √6 / 6 (another form of the same value)"
    assert status == 1 and out.splitlines()[0] == line
    assert json.loads(diff(*specs, "--json")[1])["changes"][0]["same_value"] is True
    edit(specs[1], ("scale=√6/6", "scale=√6/7"))
    assert "another form" not in diff(*specs)[1]


def test_rows_in_another_order_are_the_same_meaning_and_files_still_named(diff: Diff, specs: tuple[Path, Path]) -> None:
    rows = {
        name: line for line in specs[1].read_text().splitlines() for name in ("add1", "add2") if f"| {name} " in line
    }
    edit(specs[1], (rows["add1"], "HERE"), (rows["add2"], rows["add1"]), ("HERE", rows["add2"]))
    status, out, _ = diff(*specs)
    assert status == 0
    assert out.splitlines()[:2] == [f"same meaning: {OTHER}", "  rewritten  README.md"]


def test_a_key_and_a_path_of_one_spec_are_the_same(diff: Diff) -> None:
    assert diff("google/gemma-4-31B", GEMMA) == (0, "same meaning: only formatting differs\n", "")


def test_lines_of_a_formula_stand_below_the_first_node_of_its_op(diff: Diff, specs: tuple[Path, Path]) -> None:
    edit(specs[1].with_name("own.ops"), ("√(v + eps)", "√(v + 2·eps)"))
    status, out, _ = diff(*specs)
    head = f"{KEY}:layers[*].norm1 formula layernorm"
    lines = out.splitlines()
    assert status == 1 and lines[0] == head
    assert lines[1].startswith("  - y[.., i] = ") and lines[1].endswith("+ eps) · w[i]")
    assert lines[2].startswith("  + y[.., i] = ") and lines[2].endswith("+ 2 · eps) · w[i]")
    assert lines[3:5] == [
        f"{KEY}:layers[*].norm2 formula layernorm: as above",
        f"{KEY}:final_norm formula layernorm: as above",
    ]
    assert [line.split()[1] for line in lines[5:]] == [
        "README.md", "cuda/final_norm.cu", "cuda/norm1.cu", "cuda/norm2.cu",
        "torch/nodes/trunk.py", "triton/final_norm.py", "triton/norm1.py", "triton/norm2.py",
    ]  # fmt: skip


def test_files_of_a_renamed_node_come_and_go(diff: Diff, specs: tuple[Path, Path]) -> None:
    edit(specs[1], ("| norm2      |", "| norm_two   |"))
    status, out, _ = diff(*specs)
    assert status == 1 and out.startswith(f"{KEY}:layers[*].norm2 node renamed: norm2 → norm_two\n")
    assert "  removed    triton/norm2.py\n" in out and "  added      triton/norm_two.py\n" in out


def test_the_report_for_a_program_has_whole_values(diff: Diff, specs: tuple[Path, Path]) -> None:
    edit(specs[1], ("out.weight", f"{'o' * 200}.weight"), ("scale=1/8", "scale=1/4"))
    status, out, _ = diff(*specs, "--json")
    found: Any = json.loads(out)
    node = f"{KEY}:layers[*].attn."
    weights = "model.layers.{i}.out.weight", f"model.layers.{{i}}.{'o' * 200}.weight"
    assert status == 1 and not found["ok"]
    assert [tuple(c.values())[:-1] for c in found["changes"]] == [
        (f"{node}core", None, "constant", "scale", "0.125", "0.25"),
        (f"{node}out", None, "weight", "w", *weights),
    ]
    assert list(found["changes"][0]) == ["key", "variant", "kind", "name", "old", "new", "same_value"]
    assert {"file": "triton/attn_core_decode.py", "effect": "rewritten"} in found["files"]
    assert json.loads(diff(specs[0], specs[0], "--json")[1]) == {"ok": True, "changes": [], "files": []}


def test_mistakes_of_both_files_are_told_together(diff: Diff, specs: tuple[Path, Path]) -> None:
    edit(specs[0], ("| add1       | residual ", "| add1       | residul  "))
    edit(specs[1], ("eps=1e-5", "esp=1e-5"))
    status, out, err = diff(*specs)
    assert (status, out) == (2, "")
    assert f"{specs[0]}:" in err and "E230" in err and f"{specs[1]}:" in err and "E231" in err
    status, out, err = diff(*specs, "--json")
    codes = [e["code"] for e in json.loads(out)["errors"]]
    assert (status, err) == (2, "") and {"E230", "E231"} <= set(codes)


def test_a_mistake_that_both_share_is_told_once(diff: Diff, specs: tuple[Path, Path]) -> None:
    status, _, err = diff(specs[0].with_name("none.spec"), specs[0].with_name("none.spec"))
    assert status == 2 and err.count("E501") == 1


@pytest.fixture
def repository(specs: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """The small example in a git repository whose last revision it is; the folder of the spec."""
    folder = specs[1].parent
    for name in [n for n in os.environ if n.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.chdir(folder)
    who = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    for words in (("init", "-q"), ("add", "."), (*who, "commit", "-q", "-m", "Start")):
        subprocess.run(["git", *words], check=True)
    return folder


def test_a_spec_is_compared_with_what_it_was_at_a_revision(diff: Diff, repository: Path) -> None:
    same = (0, "same meaning: only formatting differs\n", "")
    assert diff("HEAD:tiny.spec", "tiny.spec") == same
    edit(repository / "own.ops", ("max(x, 0)", "max(x, 1)"))
    status, out, _ = diff("HEAD:tiny.spec", "tiny.spec")
    assert status == 1 and out.startswith(f"{KEY}:layers[*].mlp.act formula relu2Mul\n  - relu(x) = max(x, 0)\n")
    assert diff("HEAD:tiny.spec", "HEAD:tiny.spec") == same


def test_a_revision_is_read_from_a_folder_inside_the_repository(
    diff: Diff, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repository / "deep").mkdir()
    monkeypatch.chdir(repository / "deep")
    assert diff("HEAD:../tiny.spec", "../tiny.spec")[0] == 0


def test_mistakes_at_a_revision_are_told_with_its_name(diff: Diff, repository: Path) -> None:
    edit(repository / "tiny.spec", ("eps=1e-5", "esp=1e-5"))
    subprocess.run(["git", "add", "."], check=True)
    status, _, err = diff(":tiny.spec", "HEAD:tiny.spec")
    assert status == 2 and err.startswith(":tiny.spec:") and "error[E231]" in err and "/tmp" not in err
    status, _, err = diff("HEAD:none.spec", "HEAD:../tiny.spec")
    assert status == 2 and "cannot read `HEAD:none.spec`: fatal: " in err and "outside of the repository" in err


def test_a_warning_at_a_revision_is_told_with_its_name(diff: Diff, repository: Path) -> None:
    edit(repository / "own.ops", ("= max(x, 0)", "= max(x, 0)\n  computed as x"))
    subprocess.run(["git", "add", "."], check=True)
    status, _, err = diff("HEAD:tiny.spec", ":tiny.spec")
    assert status == 0 and err.startswith(":own.ops:") and "warning[W301]" in err


def commit(folder: Path) -> None:
    who = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    for words in (("add", "."), (*who, "commit", "-q", "-m", "More")):
        subprocess.run(["git", *words], check=True, cwd=folder)


@pytest.mark.parametrize(
    ("old", "new"),
    [('use "own.ops"', 'use"own.ops"'), ('use "own.ops"', 'use\t"own.ops"#mine'), ("", "\ufeff"), ("\n", "\r\n")],
)
def test_a_revision_is_read_as_the_parser_reads_it(diff: Diff, repository: Path, old: str, new: str) -> None:
    spec = repository / "tiny.spec"
    text = spec.read_text()
    spec.write_text(text.replace(old, new) if old else new + text, newline="")
    commit(repository)
    assert diff("HEAD:tiny.spec", "tiny.spec") == (0, "same meaning: only formatting differs\n", "")
    assert diff(":tiny.spec", "HEAD~:tiny.spec")[0] == 0


def test_a_first_line_behind_a_byte_order_mark_names_a_library(diff: Diff, repository: Path) -> None:
    spec = repository / "tiny.spec"
    use = 'use "own.ops"\n'
    spec.write_text("\ufeff" + use + spec.read_text().replace(use, ""))
    commit(repository)
    assert diff("HEAD:tiny.spec", "tiny.spec")[0] == 0


@pytest.mark.parametrize("name", ["tiny.spec", "own.ops"])
def test_a_huge_file_at_a_revision_is_not_read(diff: Diff, repository: Path, name: str) -> None:
    with (repository / name).open("a") as file:
        file.write("#" * MAX_BYTES)
    commit(repository)
    status, _, err = diff("HEAD:tiny.spec", "HEAD~:tiny.spec")
    assert status == 2 and err.startswith(f"error[E108]: `HEAD:{name}` is too long\n")


@pytest.mark.parametrize("revision", ["HEAD", ""])
def test_a_link_at_a_revision_is_refused(diff: Diff, repository: Path, revision: str) -> None:
    (repository / "link.spec").symlink_to("tiny.spec")
    commit(repository)
    status, _, err = diff(f"{revision}:link.spec", "tiny.spec")
    assert status == 2
    assert err == f"error[E501]: cannot read `{revision}:link.spec`: it is a link; name the file that it leads to\n"


def test_an_absolute_path_at_a_revision_is_refused(diff: Diff, repository: Path) -> None:
    path = repository / "tiny.spec"
    status, out, err = diff(f"HEAD:{path}", "tiny.spec")
    reason = "a path at a revision starts from the current folder"
    assert (status, out, err) == (2, "", f"error[E501]: cannot read `HEAD:{path}`: {reason}\n")


@pytest.mark.usefixtures("repository")
def test_a_full_disk_for_temporary_files_is_a_message(diff: Diff, monkeypatch: pytest.MonkeyPatch) -> None:
    done = subprocess.run(limited(100, "diff", "HEAD:tiny.spec", "tiny.spec"), capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error[E502]: cannot write a copy of `HEAD:tiny.spec`: File too large\n")
    monkeypatch.setattr(tempfile, "tempdir", "none")
    status, _, err = diff("HEAD:tiny.spec", "tiny.spec")
    assert status == 2 and err.startswith(
        "error[E502]: cannot write to a temporary folder: No such file or directory\n"
    )


def test_a_revision_is_no_option_of_git(diff: Diff, repository: Path) -> None:
    assert diff("--", "-x:tiny.spec", "tiny.spec")[0] == 2
    assert diff("HEAD --output=x:tiny.spec", "tiny.spec")[0] == 2
    assert [p.name for p in repository.iterdir() if p.name not in (".git", "tiny.spec", "own.ops")] == []


def test_without_git_a_revision_is_a_message(
    diff: Diff, specs: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    status, _, err = diff("HEAD:tiny.spec", specs[0])
    assert status == 2 and "error[E501]: cannot read `HEAD:tiny.spec`: " in err


def test_a_long_value_is_shown_around_its_first_difference() -> None:
    old, new = "a" * 300, "a" * 200 + "b" * 100
    (line,) = change_lines([Change("m@1", Kind.CONFIG, "x", old, new)])
    shown = f"…{'a' * KEPT}{'b' * (LONG - KEPT)}…"
    assert line == f"m@1 config x: …{'a' * LONG}… → {shown}" and len(shown) == LONG + 2


def test_what_a_terminal_would_obey_is_written_out() -> None:
    change = Change("m@1", Kind.MODEL, "about", "a\x1b[2J", "b\u202e")
    assert change_lines([change]) == ["m@1 model about: a\\x1b[2J → b\\u202e"]
    assert short_text(change) == "model about a\\x1b[2J → b\\u202e"


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (Change("m@1:layers[*].n", Kind.CONSTANT, "eps", "1", "2", "global"), "n (global) eps 1 → 2"),
        (Change("m@1:head", Kind.OP, "", "a", "b"), "head op a → b"),
        (Change("m@1:head", Kind.NODE, "", None, "row"), "head added"),
        (Change("m@1:layers[*].n", Kind.NODE, "", "row", None, "global"), "n (global) removed"),
        (Change("m@1:head", Kind.CONSTANT, "r", "1", None), "head r removed: 1"),
        (Change("m@1", Kind.RENAMED, "size", "a", "b"), "size renamed a → b"),
        (Change("m@1", Kind.OUTPUT, "", "a", "b"), "output a → b"),
        (Change("m@1:layers[*].n", Kind.FORMULA, "norm", "y = 1", "y = 2"), "n formula norm"),
    ],
)
def test_a_change_in_a_few_words(change: Change, text: str) -> None:
    assert short_text(change) == text
