"""`specc build --watch`: the loop with its clocks in hand, and the real command."""

from __future__ import annotations

import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Empty, Queue
from threading import Thread

import pytest

from specc.cli import run
from specc.cli.watch import INTERVAL, Watch
from specc.inputs import Options

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
TILES = 'archs = ["sm_80", "sm_90", "sm_100"]\npointwise = [{ TILE = 512, warps = 16, stages = 1 }]\n'
Step = Callable[[], object]


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    for name in ("tiny.spec", "own.ops"):
        (tmp_path / name).write_text((EXAMPLES / name).read_text())
    return tmp_path / "tiny.spec"


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def nothing() -> None:
    """Lets a look go by."""


class Loop:
    """A watch whose `sleep` does the next of `steps`, and ends the loop after the last one."""

    def __init__(self, spec: Path, *steps: Step, tiles: Path | None = None) -> None:
        self.steps = iter(steps)
        self.slept: list[float] = []
        self.ticks = iter(range(10**6))
        options = Options(("torch", "triton"), tiles)
        self.watch = Watch(
            spec, spec.parent / "out", options, self._sleep, lambda: next(self.ticks), lambda: "12:03:04"
        )

    def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        step = next(self.steps, None)
        if step is None:
            raise KeyboardInterrupt
        step()

    def run(self, capsys: pytest.CaptureFixture[str]) -> tuple[list[str], str]:
        """Lines of the standard output after the first, and the standard error."""
        capsys.readouterr()
        with pytest.raises(KeyboardInterrupt):
            self.watch.run()
        out, err = capsys.readouterr()
        first, *rest = out.splitlines()
        assert first.startswith("12:03:04 ") and f"watching {self.watch.spec}" in first
        return rest, err


def test_a_saved_constant_is_built_and_told_in_one_line(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    loop = Loop(spec, nothing, lambda: edit(spec, "scale=1/8", "scale=1/4"), nothing, nothing)
    lines, err = loop.run(capsys)
    assert lines == ["12:03:04 attn.core scale 0.125 → 0.25: 4 files written in 1.00 s"]
    assert err == "" and set(loop.slept) == {INTERVAL}
    assert "0.25" in (spec.parent / "out/tiny/triton/attn_core_decode.py").read_text()


def test_formatting_is_told_and_writes_nothing(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines, _ = Loop(spec, lambda: edit(spec, "hidden = 96", "hidden  =  96"), nothing, nothing).run(capsys)
    assert lines == ["12:03:04 formatting only, nothing written"]


def test_a_touched_file_is_no_change(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert Loop(spec, lambda: os.utime(spec, (0, 0)), nothing, nothing).run(capsys) == ([], "")


def test_a_file_is_built_once_it_is_quiet(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saves = [lambda n=n: edit(spec, f"scale=1/{7 + n}", f"scale=1/{8 + n}") for n in range(1, 5)]
    lines, _ = Loop(spec, *saves, nothing, nothing).run(capsys)
    assert lines == ["12:03:04 attn.core scale 0.125 → 1/12: 4 files written in 1.00 s"]


def test_a_used_library_is_watched_as_soon_as_it_is_named(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = spec.with_name("more.ops")
    other.write_text("# Nothing yet.\n")
    steps = (
        lambda: edit(spec, 'use "own.ops"', 'use "own.ops"\nuse "more.ops"'), nothing,
        lambda: edit(other, "# Nothing yet.", "op half(x[T]) -> y[T]\n  y[t] = x[t] / 2"), nothing,
        lambda: edit(spec.with_name("own.ops"), "max(x, 0)", "max(x, 1)"), nothing,
    )  # fmt: skip
    lines, err = Loop(spec, *steps).run(capsys)
    assert err == ""
    assert lines[:2] == ["12:03:04 order or wording only, nothing written"] * 2
    assert re.fullmatch(r"12:03:04 mlp.act formula relu2Mul: \d files written in 1.00 s", lines[2])


def test_a_tile_table_is_watched(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tiles = spec.with_name("tiles.toml")
    tiles.write_text(TILES)
    lines, _ = Loop(spec, lambda: edit(tiles, "512", "1024"), nothing, tiles=tiles).run(capsys)
    assert lines == ["12:03:04 tile table: 3 files written in 1.00 s"]


def test_a_half_saved_file_is_told_and_the_watch_goes_on(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = spec.read_text()
    loop = Loop(
        spec,
        lambda: spec.write_text(whole[: len(whole) // 2]), nothing,
        lambda: spec.write_text(whole), nothing,
        lambda: spec.write_text(whole.replace("eps=1e-5", "esp=1e-5", 1)), nothing,
        lambda: spec.write_text(whole.replace("eps=1e-5", "eps=1e-6", 1)), nothing,
    )  # fmt: skip
    lines, err = loop.run(capsys)
    assert re.fullmatch(r"12:03:04 \d+ errors?: not built", lines[0])
    assert lines[1] == "12:03:04 as before, nothing written"
    assert re.fullmatch(r"12:03:04 \d+ errors?: not built", lines[2])
    assert lines[3].startswith("12:03:04 norm1 eps 1e-05 → 1e-06: ") and len(lines) == 4
    assert "error[E231]" in err


def test_of_a_file_that_is_too_long_no_more_is_read_than_shows_it(spec: Path) -> None:
    other = spec.with_name("own.ops")
    loop = Loop(spec, lambda: os.truncate(other, 1 << 34), nothing, nothing)
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (1 << 33, hard))
    try:
        with pytest.raises(KeyboardInterrupt):
            loop.watch.run()
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def test_a_file_that_is_gone_is_told_once_and_found_again(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = spec.read_text()
    steps = (
        spec.unlink,
        nothing,
        nothing,
        lambda: spec.write_text(text.replace("vocab = 512", "vocab = 640")),
        nothing,
    )
    lines, err = Loop(spec, *steps).run(capsys)
    assert lines[0] == "12:03:04 1 error: not built" and err.count("error[E501]") == 1
    assert (
        lines[1].startswith("12:03:04 size vocab 512 → 640, embed weight w [512, 96] → [640, 96], ") and len(lines) == 2
    )


def test_an_editor_may_replace_the_file_or_take_it_away_for_a_moment(
    spec: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = spec.with_name("new")

    def replace() -> None:
        new.write_text(spec.read_text().replace("page = 16", "page = 32"))
        os.replace(new, spec)

    text = spec.read_text().replace("page = 16", "page = 64")
    lines, err = Loop(spec, replace, nothing, spec.unlink, lambda: spec.write_text(text), nothing).run(capsys)
    assert err == "" and [re.sub(":[^:]*$", "", line) for line in lines] == [
        "12:03:04 domain page 16 → 32",
        "12:03:04 domain page 32 → 64",
    ]


def test_many_changes_are_cut_short_and_removed_files_counted(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def save() -> None:
        edit(spec, "| norm2      |", "| norm_two   |")
        edit(spec, "eps=1e-5", "eps=1e-6")

    lines, _ = Loop(spec, save, nothing).run(capsys)
    assert lines == [
        "12:03:04 norm1 eps 1e-05 → 1e-06, norm2 removed, norm_two added, and 1 more: "
        "8 files written, 1 removed in 1.00 s"
    ]


def test_a_spec_that_is_broken_at_first_is_built_once_it_is_whole(
    spec: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = spec.read_text()
    spec.write_text("modle x\n")
    with pytest.raises(KeyboardInterrupt):
        Loop(spec, lambda: spec.write_text(whole), nothing).watch.run()
    out, err = capsys.readouterr()
    assert "error[E101]" in err
    first, second = out.splitlines()
    assert first.endswith("not built") and second.endswith(f"watching {spec}, {spec.with_name('own.ops')}")


@pytest.mark.parametrize("option", [["--check"], ["--json"], ["--compile", "sm_90"], ["--dump-stage", "model"]])
def test_what_a_watch_cannot_do_is_refused(spec: Path, option: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["build", str(spec), "--watch", *option]) == 2
    assert "--watch" in capsys.readouterr().err


def test_a_spec_that_is_not_there_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["build", str(tmp_path / "none.spec"), "--watch"]) == 2
    assert "E501" in capsys.readouterr().err


@pytest.fixture
def command(spec: Path) -> Iterator[subprocess.Popen[str]]:
    """`specc build --watch` as a process."""
    arguments = [sys.executable, "-m", "specc", "build", str(spec), "--watch", "--out", str(spec.parent / "out")]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    yield process
    process.kill()
    process.wait()


def test_the_command_builds_on_save_and_ends_with_ctrl_c(spec: Path, command: subprocess.Popen[str]) -> None:
    lines: Queue[str] = Queue()
    assert command.stdout is not None
    Thread(target=lambda stream: [lines.put(line) for line in stream], args=(command.stdout,), daemon=True).start()

    def line(deadline: float) -> str:
        try:
            return lines.get(timeout=deadline).rstrip()
        except Empty:
            pytest.fail("no line in time")

    assert re.fullmatch(rf"\d\d:\d\d:\d\d .*written; watching {re.escape(str(spec))}, .*own.ops", line(60))
    edit(spec, "scale=1/8", "scale=1/4")
    saved = time.monotonic()
    told = line(30)
    assert re.fullmatch(r"\d\d:\d\d:\d\d attn.core scale 0.125 → 0.25: 6 files written in \d+\.\d\d s", told)
    assert time.monotonic() - saved >= INTERVAL
    command.send_signal(signal.SIGINT)
    status = command.wait(timeout=30)
    assert status == 0 and command.stderr is not None and command.stderr.read() == ""
