"""`specc check`: green and red, a counterexample file, and `specc eval` replaying it."""

from __future__ import annotations

import errno
import json
import os
import shlex
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from specc.cli import run
from specc.evidence import suite
from specc.evidence.check import Executor
from specc.evidence.execute import TritonExecutor
from specc.ir import Model
from specc.lowered import all_kernels, lower_each
from specc.targets.triton import load
from specc.targets.triton.emit import emit

TINY = Path(__file__).parents[2] / "docs" / "examples" / "tiny.spec"


def check(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str]:
    capsys.readouterr()
    status = run(["check", str(TINY), "--examples", "1", "--seed", "1", *map(str, words)])
    return status, capsys.readouterr().out


def test_a_right_node_is_verified_on_every_target(capsys: pytest.CaptureFixture[str]) -> None:
    status, text = check(capsys, "--node", "norm1")
    assert status == 0 and "3 VERIFIED" in text and "seed 1" in text
    assert all(f"VERIFIED {target} " in text for target in ("cuda", "torch", "triton"))


def test_without_a_compiler_a_target_that_needs_one_is_left_out_and_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    status, text = check(capsys, "--node", "add1")
    assert status == 0 and "2 VERIFIED\ncuda not checked: this needs a C++20 compiler, and CXX names" in text
    status, text = check(capsys, "--node", "add1", "--json")
    assert status == 0 and list(json.loads(text)["not_checked"]) == ["cuda"]
    assert check(capsys, "--node", "add1", "--target", "cuda", "--target", "torch")[0] == 2


def test_the_report_for_a_program_has_every_field(capsys: pytest.CaptureFixture[str]) -> None:
    status, text = check(capsys, "--node", "mlp.act", "--target", "torch", "--json")
    report = json.loads(text)
    (one,) = report["reports"]
    assert status == 0 and report["ok"] and report["seed"] == 1
    assert one["constants"] == {"I": "160"} and one["status"] == "VERIFIED" and one["evidence"] == "run on the CPU"
    assert one["dtypes"] == ["float32", "bfloat16", "float16"] and one["examples"] >= 5
    assert 0 <= one["error_over_bound"] <= 1 and 0 <= one["bound_over_rms"] <= 0.05


def test_a_wrong_kernel_is_refuted_and_its_counterexample_replayed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def planted(model: Model, *options: object) -> tuple[Executor, ...]:
        (kernel,) = (k for k in all_kernels(lower_each(model)) if k.name == "norm1")
        text = emit(kernel)
        assert "other=0.0" in text
        wrong = text.replace("tl.sum(", "1.5 * tl.sum(")
        assert wrong != text
        return (TritonExecutor({kernel.name: wrong}),)

    monkeypatch.setattr(suite, "executors", planted)
    status, text = check(capsys, "--node", "norm1", "--target", "triton", "--out", tmp_path)
    assert status == 1 and "REFUTED" in text and "replay: specc eval" in text
    file = tmp_path / "norm1.triton.npz"
    with np.load(file) as found:
        assert {"case", "x", "w"} <= set(found.files)
    key = f"{TINY}:layers[0].norm1"
    assert run(["eval", key, "--inputs", str(file), "--target", "oracle"]) == 0
    assert "y" in capsys.readouterr().out


def test_what_the_machine_lacks_is_no_verdict(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/tmp/some/file")

    for module, target in (("torch", "torch"), ("triton", "triton")):
        name = {"torch": "run_node", "triton": "run"}[target]
        monkeypatch.setattr(f"specc.targets.{module}.target.{name}", full)
        words = ["check", str(TINY), "--examples", "0", "--node", "norm1", "--target", target]
        assert run(words) == 2
        printed = capsys.readouterr()
        assert printed.err == "error[E502]: cannot write `/tmp/some/file`: No space left on device\n"
        assert "REFUTED" not in printed.out


def test_temporary_files_that_cannot_be_written_are_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load, "_folder", lambda: SimpleNamespace(name="/dev/null/x"))
    load.load_module.cache_clear()
    assert run(["check", str(TINY), "--examples", "0", "--node", "norm1", "--target", "triton"]) == 2
    printed = capsys.readouterr()
    assert printed.err.startswith("error[E502]: cannot write `/dev/null/x/") and "help: `TMPDIR`" in printed.err
    assert "REFUTED" not in printed.out


@pytest.mark.parametrize("old, new", [("relu(gu[.., i])²", "tanh(gu[.., i])"), ("x[.., i] - m)", "x[.., i] + m)")])
def test_an_own_op_with_an_own_formula_has_a_cuda_kernel_that_is_verified_with_no_new_template(
    old: str, new: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    own = TINY.with_name("own.ops").read_text(encoding="utf-8")
    assert old in own
    (tmp_path / "own.ops").write_text(own.replace(old, new), encoding="utf-8")
    spec = tmp_path / "tiny.spec"
    spec.write_text(TINY.read_text(encoding="utf-8"), encoding="utf-8")
    node, file = ("mlp.act", "mlp_act.cu") if "relu" in old else ("norm1", "norm1.cu")
    texts = []
    for path, out in ((TINY, "before"), (spec, "after")):
        assert run(["build", str(path), "--target", "cuda", "--out", str(tmp_path / out)]) == 0
        texts.append((tmp_path / out / "tiny" / "cuda" / file).read_text(encoding="utf-8"))
    assert texts[0] != texts[1]
    words = ["check", str(spec), "--node", node, "--target", "cuda", "--examples", "1", "--seed", "1"]
    capsys.readouterr()
    assert run(words) == 0
    assert "VERIFIED cuda" in capsys.readouterr().out


HUGE = """[[cuda.contraction]]
arch = "sm_80"
BLOCK_M = 256
BLOCK_N = 256
BLOCK_K = 64
WARPS_M = 2
GROUP_M = 1
warps = 8
stages = 4
"""
"""More shared memory than a block may have on any GPU."""


def test_tiles_for_a_gpu_are_run_where_it_is_asked_for_and_replayed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    table = tmp_path / "own.toml"
    table.write_text(HUGE)
    words = ["--node", "mlp.down", "--target", "cuda", "--tiles", str(table), "--out", str(tmp_path)]
    status, text = check(capsys, *words)
    assert status == 0 and text.endswith(
        "1 VERIFIED\ncuda tiles for sm_80 not checked: kernels have them with `--gpu sm_80`\n"
    )
    assert list(json.loads(check(capsys, *words, "--json")[1])["not_checked"]) == ["cuda tiles for sm_80"]
    status, text = check(capsys, *words, "--gpu", "sm_90")
    assert "not checked" not in text
    assert status == 1 and "524288 of dynamic shared memory is not possible" in text
    assert "run on the CPU, tiles of sm_90" in text
    replay = shlex.split(text.partition("replay: specc ")[2].splitlines()[0])
    assert replay[-4:] == ["--tiles", str(table), "--gpu", "sm_90"]
    assert run(replay) == 1 and "E510" in capsys.readouterr().err
    assert run(replay[:-2]) == 0


OPEN = """op openGQA(q[T, heads, D], k[L, kv_heads, D], v[L, kv_heads, D], pos[T]: index; D: nat, heads: nat,
  kv_heads: nat) -> o[T, heads, D]
  o[t, h, d] = Σ_l softmax_l(Σ_e q[t, h, e] · k[l, h // 2, e] / 8) · v[l, h // 2, d]

op openDecode(q[B, heads, D], k[B, S, kv_heads, D], v[B, S, kv_heads, D], seq_lens[B]: index;
  D: nat, heads: nat, kv_heads: nat) -> o[B, heads, D]
  prefill openGQA
  o[b, h, d] = Σ_l softmax_l(Σ_e q[b, h, e] · k[b, l, h // 2, e] / 8) · v[b, l, h // 2, d]
"""


def test_an_own_op_that_does_not_read_all_its_operands_is_verified_on_every_target(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    own = TINY.with_name("own.ops").read_text(encoding="utf-8")
    (tmp_path / "own.ops").write_text(f"{own}\n{OPEN}", encoding="utf-8")
    spec, text = tmp_path / "tiny.spec", TINY.read_text(encoding="utf-8")
    assert "decodeGQA | all    | D, heads, kv_heads, scale=1/8" in text
    text = text.replace("decodeGQA", "openDecode").replace(", scale=1/8", "")
    spec.write_text(text, encoding="utf-8")
    words = ["--target", "triton", "--target", "torch", "--target", "cuda", "--examples", "0", "--seed", "1"]
    capsys.readouterr()
    assert run(["check", str(spec), "--node", "attn.core", *words]) == 0
    assert "6 VERIFIED" in capsys.readouterr().out


def test_an_unknown_node_or_target_is_bad_input(capsys: pytest.CaptureFixture[str]) -> None:
    assert check(capsys, "--node", "nrom1")[0] == 2
    assert check(capsys, "--target", "metal")[0] == 2
