"""`specc build --watch`: builds again whenever the spec, an op library that it uses, or the tile table is saved."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from specc import pipeline
from specc.cli.build import build_text, kept_lines
from specc.cli.output import count, print_errors, print_warnings
from specc.diagnostics import SpecError
from specc.echo import visible
from specc.inputs import Options, read_source
from specc.limits import MAX_BYTES

if TYPE_CHECKING:
    from specc.ir import Model
    from specc.pipeline import Build

INTERVAL = 0.3
"""Seconds between two looks at the files. A change counts once two looks in a row find the same content."""
SHOWN = 3
"""How many changes the line about a build names."""

Look = dict[Path, str | None]
"""The content of each watched file, as a hash; None for one that cannot be read."""


def watch(spec: Path, out: Path, options: Options) -> None:
    """Builds on every save until interrupted. Raises SpecError (E501) for a spec that is not there to begin with."""
    read_source(spec)
    try:
        Watch(spec, out, options).run()
    except KeyboardInterrupt:
        print(flush=True)


@dataclass
class Watch:
    """The loop, with its clocks."""

    spec: Path
    out: Path
    options: Options
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.perf_counter
    stamp: Callable[[], str] = lambda: time.strftime("%H:%M:%S")
    uses: tuple[Path, ...] = ()
    model: Model | None = None
    """What was built last."""
    words: tuple[str, ...] = ()
    """Its wording."""
    built: Look = field(default_factory=dict)

    def run(self) -> None:
        """Never returns."""
        settled = seen = self._build(self._look())
        while True:
            self.sleep(INTERVAL)
            now = self._look()
            if now == seen != settled:
                settled = now = self._build(now)
            seen = now

    def _look(self) -> Look:
        tiles = () if self.options.tiles is None else (self.options.tiles,)
        return {path: _content(path) for path in (self.spec, *self.uses, *tiles)}

    def _build(self, now: Look) -> Look:
        """Builds what `now` saw, and says so. Gives `now` with the libraries that the spec uses by now."""
        from specc.cli.diff import wording

        start = self.clock()
        try:
            syntax = pipeline.parse(self.spec)
            self.uses = pipeline.used_files(self.spec, syntax)
            now = {path: now.get(path, content) for path, content in self._look().items()}
            model, words = pipeline.check(self.spec, syntax), wording(self.spec, syntax)
            done = pipeline.build(self.spec, self.out, self.options)
        except SpecError as error:
            print_errors(error, as_json=False)
            self._say([f"{count(len(error.diagnostics), 'error')}: not built"])
            return now
        print_warnings(done.warnings)
        self._say([self._line(model, words, now, done, self.clock() - start), *kept_lines(done)])
        self.model, self.words, self.built = model, words, now
        return now

    def _say(self, lines: Sequence[str]) -> None:
        print("\n".join([f"{self.stamp()} {lines[0]}", *lines[1:]]), flush=True)

    def _line(self, model: Model, words: tuple[str, ...], now: Look, done: Build, seconds: float) -> str:
        if self.model is None:
            return f"{build_text(done)}; watching {', '.join(visible(str(path)) for path in now)}"
        what, written = self._what(self.model, model, words, now), done.written
        if written is None or not (written.wrote or written.removed):
            return f"{what}, nothing written"
        removed = f", {len(written.removed)} removed" if written.removed else ""
        return f"{what}: {count(len(written.wrote), 'file')} written{removed} in {seconds:.2f} s"

    def _what(self, old: Model, new: Model, words: tuple[str, ...], now: Look) -> str:
        """What changed since the last build, in a few words."""
        from specc.cli.diff import short_text
        from specc.compare import compare

        changes = compare(old, new)
        if changes:
            more = [f"and {len(changes) - SHOWN} more"] if len(changes) > SHOWN else []
            return ", ".join([*map(short_text, changes[:SHOWN]), *more])
        if now == self.built:
            return "as before"
        if self.options.tiles is not None and now.get(self.options.tiles) != self.built.get(self.options.tiles):
            return "tile table"
        return "formatting only" if old == new and words == self.words else "order or wording only"


def _content(path: Path) -> str | None:
    """Of a file that is too long, this is its beginning: it is refused whatever follows."""
    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            return hashlib.sha256(file.read(MAX_BYTES + 1)).hexdigest()
    except OSError:
        return None
