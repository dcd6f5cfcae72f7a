from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from specc import __version__
from specc.cli import run
from specc.diagnostics import nearest
from specc.limits import MAX_SHOWN
from specc.resources import shipped

SPEC = str(shipped("specs") / "gemma4.spec")
MODEL = "google/gemma-4-31B"
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def specc(capsys: pytest.CaptureFixture[str]) -> Run:
    """`specc ARGUMENTS`: exit status, standard output, standard error."""

    def call(*arguments: object) -> tuple[int, str, str]:
        capsys.readouterr()
        status = run([str(a) for a in arguments])
        out, err = capsys.readouterr()
        return status, out, err

    return call


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A copy of the small example, with its op library."""
    examples = Path(__file__).parents[2] / "docs" / "examples"
    for name in ("tiny.spec", "own.ops"):
        (tmp_path / name).write_text((examples / name).read_text())
    return tmp_path / "tiny.spec"


def values(text: str) -> Any:
    return json.loads(text)


def test_the_version_is_printed(specc: Run) -> None:
    assert specc("--version") == (0, f"specc {__version__}\n", "")


def test_a_build_writes_then_finds_nothing_to_do(specc: Run, own: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    status, text, _ = specc("build", own, "--out", out)
    assert status == 0 and "written" in text
    assert {p.name for p in (out / "tiny").iterdir()} == {
        "README.md",
        "config.json",
        "cuda",
        "manifest.json",
        "torch",
        "triton",
    }
    assert specc("build", own, "--out", out)[1].endswith("up to date\n")
    assert specc("build", own, "--out", out, "--check") == (0, f"{out}/tiny: as built\n", "")


def test_one_target_is_built_alone(specc: Run, own: Path, tmp_path: Path) -> None:
    assert specc("build", own, "--out", tmp_path / "o", "--target", "torch")[0] == 0
    assert not (tmp_path / "o/tiny/triton").exists()
    assert (tmp_path / "o/tiny/torch/model.py").is_file()


TILES = """archs = ["sm_80", "sm_90", "sm_100"]
pointwise = [{ TILE = 512, warps = 16, stages = 1 }]
"""


def test_a_tile_table_of_ones_own_comes_first_and_is_part_of_the_input(specc: Run, own: Path, tmp_path: Path) -> None:
    out, tiles = tmp_path / "out", tmp_path / "tiles.toml"
    tiles.write_text(TILES)
    assert specc("build", own, "--out", out)[0] == 0
    status, text, _ = specc("build", own, "--out", out, "--tiles", tiles)
    assert status == 0 and "3 written" in text
    assert "Config(None, 16, 1, " in (out / "tiny/triton/add1.py").read_text()
    assert "up to date" in specc("build", own, "--out", out, "--tiles", tiles)[1]
    tiles.write_text(TILES.replace("16", "2"))
    assert "3 written" in specc("build", own, "--out", out, "--tiles", tiles)[1]
    assert specc("build", own, "--out", out, "--check")[0] == 1


def test_check_fails_with_a_diff_and_writes_nothing(specc: Run, own: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    specc("build", own, "--out", out)
    page = out / "tiny/README.md"
    page.write_text(page.read_text().replace("# tiny", "# tinny"))
    edited = page.read_text()
    status, text, _ = specc("build", own, "--out", out, "--check")
    assert status == 1
    assert "README.md: edited by hand\n--- README.md (as it is)" in text
    assert "\n-# tinny\n+# tiny\n" in text
    assert page.read_text() == edited
    status, text, _ = specc("build", own, "--out", out, "--check", "--json")
    assert status == 1
    assert [d["file"] for d in values(text)["drift"]] == ["README.md"]


def test_check_does_not_promise_what_a_build_refuses(specc: Run, own: Path, tmp_path: Path) -> None:
    page = tmp_path / "out/tiny/README.md"
    page.parent.mkdir(parents=True)
    page.write_text("mine\n")
    status, text, _ = specc("build", own, "--out", tmp_path / "out", "--check")
    assert status == 1 and "repairs it" not in text
    assert text.endswith("`specc build` would not replace 1 file: move away what is there, or choose `--out`\n")
    assert specc("build", own, "--out", tmp_path / "out")[0] == 2
    page.unlink()
    assert "`specc build` repairs it" in specc("build", own, "--out", tmp_path / "out", "--check")[1]


def test_build_reports_as_json(specc: Run, own: Path, tmp_path: Path) -> None:
    status, text, _ = specc("build", own, "--out", tmp_path / "o", "--json")
    found = values(text)
    assert status == 0 and found["ok"] and sorted(found["wrote"]) == sorted(found["files"])


@pytest.mark.parametrize("stage", ["syntax", "model", "kernels", "files"])
def test_every_stage_can_be_dumped_without_writing(specc: Run, own: Path, tmp_path: Path, stage: str) -> None:
    status, text, _ = specc("build", own, "--out", tmp_path / "o", "--dump-stage", stage)
    assert status == 0
    assert "norm1" in text
    assert not (tmp_path / "o").exists()


def test_show_prints_a_model_by_key_and_by_file(specc: Run) -> None:
    by_key, by_file = specc("show", MODEL), specc("show", SPEC)
    assert by_key == by_file
    assert "30,697,345,340" in by_key[1]


def test_show_prints_markdown_and_json(specc: Run) -> None:
    assert specc("show", MODEL, "--format", "markdown")[1].startswith("# gemma-4-31B\n")
    status, text, _ = specc("show", MODEL, "--format", "json")
    assert (status, len(values(text)["nodes"])) == (0, 24)
    assert specc("show", MODEL, "--json")[1] == text


def test_show_prints_one_node(specc: Run) -> None:
    text = specc("show", f"{MODEL}@1.0:layers[5].attn.core")[1]
    assert "decodeGQA" in text and "slidingDecodeGQA" not in text
    assert len(values(specc("show", f"{SPEC}:layers[*].attn.core", "--json")[1])) == 2


def test_list_names_models_and_ops(specc: Run) -> None:
    status, text, _ = specc("list")
    assert status == 0 and f"{MODEL}@1.0" in text and "slidingDecodeGQA" in text
    assert MODEL in [m["model"] for m in values(specc("list", "--json")[1])["models"]]


def test_fmt_rewrites_and_check_only_tells(specc: Run, own: Path) -> None:
    canonical = own.read_text()
    assert specc("fmt", "--check", own, own.with_name("own.ops"))[0] == 0
    own.write_text(canonical.replace("hidden = 96", "hidden  =   96"))
    status, text, _ = specc("fmt", "--check", own)
    assert status == 1 and "-  hidden  =   96\n+  hidden = 96\n" in text
    assert "hidden  =" in own.read_text()
    assert specc("fmt", own) == (0, f"{own}: formatted\n", "")
    assert own.read_text() == canonical


def test_eval_computes_a_node_with_the_oracle_and_with_targets(specc: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((2, 5376)), rng.standard_normal(5376)
    np.savez(tmp_path / "in.npz", x=x, w=w)
    results = {}
    for target in ("oracle", "torch", "triton"):
        out = tmp_path / f"{target}.npz"
        key = f"{MODEL}@1.0:final_norm"
        status, _, err = specc("eval", key, "--inputs", tmp_path / "in.npz", "--target", target, "--output", out)
        assert (status, err) == (0, "")
        results[target] = np.load(out)["y"]
    want = x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6) * w
    assert np.allclose(results["oracle"], want, rtol=16 * 2.0**-53, atol=0)
    assert np.allclose(results["torch"], want, rtol=64 * 2.0**-24, atol=0) and np.allclose(
        results["triton"], want, rtol=64 * 2.0**-24, atol=0
    )


def test_a_model_is_built_and_checked_by_its_key(
    specc: Run, own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    status, text, err = specc("build", "example/tiny", "--target", "torch")
    assert (status, err) == (0, "") and (tmp_path / "generated" / "tiny" / "torch" / "model.py").is_file()
    status, text, err = specc("check", "example/tiny@1.0", "--node", "add1", "--target", "torch", "--examples", 0)
    assert (status, err) == (0, "") and "VERIFIED" in text


def test_a_library_used_twice_is_said_so(specc: Run, own: Path) -> None:
    own.write_text(own.read_text().replace('use "own.ops"\n', 'use "own.ops"\nuse "own.ops"\n'))
    status, _, err = specc("build", own)
    assert status == 2 and ':7:1: error[E105]: `use "own.ops"` is given twice' in err


def test_a_name_is_suggested_once() -> None:
    assert nearest("x", ["H", "eps", "H"]) == "known here: `H`, `eps`"


def test_a_byte_order_mark_is_no_part_of_a_text(specc: Run, own: Path, tmp_path: Path) -> None:
    for path in (own, tmp_path / "own.ops"):
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    status, text, err = specc("build", own, "--target", "torch", "--out", tmp_path / "out")
    assert (status, err) == (0, "")


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        ([], 2, "error[E507]: `embed`: "),
        (["--target", "torch"], 1, "error[E510]: the target failed: IndexError: "),
        (["--target", "triton", "--dtype", "float64"], 2, "error[E505]: triton stores nothing in float64"),
        (["--target", "cuda", "--tiles", "none.toml"], 2, "error[E501]: cannot read `none.toml`"),
        (["--target", "cuda", "--gpu", "sm_9x"], 2, "error[E505]: there is no architecture `sm_9x`"),
    ],
)
def test_eval_says_what_it_cannot_compute(
    specc: Run, own: Path, tmp_path: Path, options: list[str], status: int, message: str
) -> None:
    np.savez(tmp_path / "in.npz", tokens=np.array([600]), w=np.ones((512, 96)))
    arguments = ["eval", f"{own}:embed", "--inputs", tmp_path / "in.npz", *options]
    found, out, err = specc(*arguments)
    assert (found, out) == (status, "") and err.startswith(message)
    found, out, err = specc(*arguments, "--json")
    assert (found, err) == (status, "") and message[6:10] == values(out)["errors"][0]["code"]


@pytest.mark.parametrize("target", ["oracle", "torch"])
@pytest.mark.parametrize(
    ("option", "message"),
    [
        (["--dtype", "int8"], "error[E505]: there is no type `int8`"),
        (["--tiles", "none.toml"], "error[E501]: cannot read `none.toml`"),
        (["--gpu", "nonsense"], "error[E505]: there is no architecture `nonsense`"),
    ],
)
def test_eval_checks_options_that_mean_nothing_to_the_target(
    specc: Run, own: Path, tmp_path: Path, target: str, option: list[str], message: str
) -> None:
    np.savez(tmp_path / "in.npz", tokens=np.array([3]), w=np.ones((512, 96)))
    arguments = ["eval", f"{own}:embed", "--inputs", tmp_path / "in.npz", "--target", target]
    status, out, err = specc(*arguments, *option)
    assert (status, out) == (2, "") and err.startswith(message)
    status, _, err = specc(*arguments, "--dtype", "float16", "--gpu", "sm_90")
    assert (status, err) == (0, "")


def test_eval_says_how_a_kernel_fails(specc: Run, own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from specc.targets.triton.interpret_faults import MemoryFault

    def fail(*arguments: object, **options: object) -> None:
        raise MemoryFault("reads past the end", "w_ptr", 600)

    monkeypatch.setattr("specc.targets.triton.target.run", fail)
    np.savez(tmp_path / "in.npz", tokens=np.array([6]), w=np.ones((512, 96)))
    status, _, err = specc("eval", f"{own}:embed", "--inputs", tmp_path / "in.npz", "--target", "triton")
    assert status == 1 and "the target failed: MemoryFault: reads past the end" in err


MISTAKES = {
    "no command": ([], None),
    "unknown command": (["bild"], "No such command"),
    "no spec": (["build"], "Missing argument"),
    "missing file": (["build", "nope.spec"], "error[E501]: cannot read `nope.spec`: No such file or directory"),
    "a folder": (["build", "."], "error[E504]"),
    "binary": (["build", "{tmp}/binary.spec"], "is no UTF-8 text"),
    "syntax": (["build", "{tmp}/bad.spec"], "bad.spec:1:1: error[E101]"),
    "unknown target": (["build", SPEC, "--target", "trition"], "did you mean `triton`?"),
    "unknown stage": (["build", SPEC, "--dump-stage", "kernel"], "did you mean `kernels`?"),
    "unknown model": (["show", "google/gemma-4-32B"], "did you mean `google/gemma-4-31B`?"),
    "unknown node": (["show", f"{MODEL}@1.0:layers[*].attn.cor"], "did you mean `attn.core`?"),
    "unknown layer": (["show", f"{MODEL}@1.0:layers[60].attn.core"], "layers are 0 to 59"),
    "another version": (["show", f"{MODEL}@2.0:lm_head"], "error[E504]"),
    "unknown format": (["show", MODEL, "--format", "pdf"], "Invalid value"),
    "neither spec nor ops": (["fmt", "{tmp}/notes.txt"], "error[E506]"),
    "no node": (["eval", MODEL, "--inputs", "x.npz"], "error[E280]"),
    "no arrays": (["eval", f"{MODEL}@1.0:lm_head", "--inputs", "x.npz"], "error[E501]"),
    "no arrays in it": (["eval", f"{MODEL}@1.0:lm_head", "--inputs", SPEC], "error[E501]"),
    "no tile table": (["build", SPEC, "--tiles", "none.toml"], "error[E501]: cannot read `none.toml`"),
    "no such GPU": (["check", SPEC, "--gpu", "sm_9x"], "error[E505]: there is no architecture `sm_9x`"),
    "no such GPU either": (["check", SPEC, "--gpu", "sm_91"], "help: did you mean `sm_90`?"),
    "bad tile table": (["build", SPEC, "--tiles", "{tmp}/notes.txt"], "error[E902]"),
    "unknown architecture": (["build", SPEC, "--out", "{tmp}/o", "--compile", "sm_9"], "did you mean `sm_90`?"),
    "used library missing": (["build", "{tmp}/tiny.spec"], "error[E501]"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_users_mistake_is_a_message_and_status_2(
    specc: Run, own: Path, tmp_path: Path, mistake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "binary.spec").write_bytes(b"\xff\xfe")
    (tmp_path / "bad.spec").write_text("modle x\n")
    (tmp_path / "notes.txt").write_text("pointwise = 3")
    (tmp_path / "own.ops").unlink()
    monkeypatch.chdir(tmp_path)
    arguments, message = MISTAKES[mistake]
    status, out, err = specc(*(a.format(tmp=tmp_path) for a in arguments))
    assert status == 2
    assert "Traceback" not in out + err
    assert message is None or message in err
    assert not (tmp_path / "o").exists()


def test_mistakes_are_json_where_json_was_asked_for(specc: Run) -> None:
    status, text, err = specc("show", "google/gemma-4-32B", "--json")
    assert (status, err) == (2, "")
    (error,) = values(text)["errors"]
    assert error["code"] == "E504"


def test_a_read_only_folder_is_a_message(
    specc: Run, own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(source: Path, target: Path) -> None:
        raise PermissionError(13, "Permission denied", str(source))

    monkeypatch.setattr(os, "replace", refuse)
    status, _, err = specc("build", own, "--out", tmp_path / "o")
    assert status == 2 and "error[E502]: cannot write" in err and "Permission denied" in err


def test_a_missing_library_is_a_message_that_names_the_extra(specc: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numpy", None)
    status, _, err = specc("eval", f"{MODEL}@1.0:lm_head", "--inputs", "x.npz")
    assert status == 2 and "pip install 'specc[run]'" in err


def test_a_closed_pipe_is_no_error() -> None:
    command = f"{sys.executable} -m specc show {MODEL} | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("gemma-4-31B\n", "")


def test_fmt_tells_the_mistakes_of_all_files_and_writes_none(specc: Run, own: Path, tmp_path: Path) -> None:
    own.write_text(own.read_text().replace("heads = 4", "heads  =  4"))
    (tmp_path / "a.ops").write_text("def f(x) = = x\n")
    (tmp_path / "b.ops").write_text("def g(x) = x +\n")
    before = own.read_text()
    status, text, err = specc("fmt", own, tmp_path / "a.ops", tmp_path / "none.ops", tmp_path / "b.ops")
    assert (status, text) == (2, "") and own.read_text() == before
    assert all(name in err for name in ("a.ops:1:12: error[E101]", "b.ops:1:15: error[E10", "none.ops`: No such"))


def test_of_very_many_warnings_the_first_are_shown(specc: Run, own: Path, tmp_path: Path) -> None:
    forms = "".join(f"def f{n}(x) = x + {n}\n  computed as x + {n}.5\n" for n in range(130))
    (tmp_path / "own.ops").write_text((tmp_path / "own.ops").read_text() + "\n" + forms)
    status, _, err = specc("build", own, "--target", "torch", "--out", tmp_path / "out")
    assert status == 0
    assert err.count("warning[W301]") == MAX_SHOWN and err.endswith("\n… and 110 more\n")
