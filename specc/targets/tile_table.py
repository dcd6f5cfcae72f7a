"""Tables of tiles: sizes, warps and stages by schedule, GPU architecture, storage width and number of rows."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from specc.diagnostics import Collector, Diagnostic, SpecError, nearest
from specc.limits import MAX_TILE, MAX_TILE_LINE, MAX_TILES
from specc.source import Source, Span

WIDTHS = (2, 4)
"""Bytes of a stored element."""
COMPARISONS: Mapping[str, Callable[[int, int], bool]] = {
    "<=": lambda a, b: a <= b, ">=": lambda a, b: a >= b, "<": lambda a, b: a < b, ">": lambda a, b: a > b,
    "==": lambda a, b: a == b,
}  # fmt: skip
CONDITION = re.compile(r"(\w+)\s*(<=|>=|==|<|>)\s*(\d+)")


@dataclass(frozen=True)
class Forms:
    """By schedule: the tiles that a row gives, and the facts that its `when` may speak of. `archs`: what names of
    architectures look like. `fault`: why a template cannot take the tiles of a row of a schedule, or nothing."""

    tiles: Mapping[str, tuple[str, ...]]
    facts: Mapping[str, tuple[str, ...]]
    archs: str = r"sm_\d{1,4}"
    fault: Callable[[str, Config], str] = lambda schedule, config: ""


@dataclass(frozen=True)
class Config:
    """Tiles for at most `rows` rows (None: any number)."""

    rows: int | None
    warps: int
    stages: int
    tiles: tuple[tuple[str, int], ...]

    def tile(self, name: str) -> int:
        """Raises KeyError."""
        return dict(self.tiles)[name]


Configs = tuple[tuple[str, tuple[tuple[int, tuple[Config, ...]], ...]], ...]
"""By architecture, then by bytes of a stored element: configurations in order of rows."""


@dataclass(frozen=True)
class Row:
    """One row of the table. `when`: (fact, comparison, number), all of which must hold."""

    schedule: str
    archs: tuple[str, ...]
    widths: tuple[int, ...]
    when: tuple[tuple[str, str, int], ...]
    config: Config

    def fits(self, arch: str, width: int, facts: Mapping[str, int]) -> bool:
        """Whether the row is for this architecture and storage width, and for a kernel of these facts."""
        holds = all(COMPARISONS[op](facts[name], number) for name, op, number in self.when)
        return arch in self.archs and width in self.widths and holds


@dataclass(frozen=True)
class TileTable:
    """Architectures in order, and rows: the first that fits is taken."""

    archs: tuple[str, ...]
    rows: tuple[Row, ...]

    def alone(self, gpu: str) -> TileTable:
        """The table for one GPU ("sm_90"): of the newest of its architectures that `gpu` runs. Raises LookupError where
        there is none, with what there is."""
        known = {int(a.removeprefix("sm_")): a for a in self.archs if a.startswith("sm_")}
        fit = [number for number in known if number <= int(gpu.removeprefix("sm_"))]
        if not fit:
            raise LookupError(f"there are tiles for {', '.join(known.values())} and later")
        return TileTable((known[max(fit)],), self.rows)

    def resolve(self, schedule: str, facts: Mapping[str, int]) -> Configs:
        """The configurations of one kernel. Raises SpecError where the table has none for some GPU."""
        return tuple(
            (arch, tuple((width, self._find(schedule, arch, width, facts)) for width in WIDTHS)) for arch in self.archs
        )

    def _find(self, schedule: str, arch: str, width: int, facts: Mapping[str, int]) -> tuple[Config, ...]:
        found: list[Config] = []
        for row in self.rows:
            if row.schedule == schedule and row.fits(arch, width, facts):
                limit = row.config.rows
                if limit is None or not found or limit > (found[-1].rows or 0):
                    found.append(row.config)
                if limit is None:
                    return tuple(found)
        known = ", ".join(f"{n} = {v}" for n, v in facts.items())
        message = f"no tiles for {schedule} on {arch} with {width}-byte storage and any number of rows ({known})"
        raise SpecError([Diagnostic("E901", message)])


SECTIONS = ("cuda",)
"""Targets whose rows stand in a table of their own in a user's file: `[[cuda.contraction]]`."""


def parse_table(text: str, name: str, archs: tuple[str, ...], forms: Forms, section: str = "") -> TileTable:
    """A table from TOML, or of one of the SECTIONS of it. `archs`: architectures known beside the file's own, which a
    section has none of. Raises SpecError."""
    source, report = Source(name, text), Collector()
    data = _toml(source)
    own: tuple[str, ...] = () if section else _archs(source, data, forms, report)
    data.pop("archs", None)
    rest = {key: data.pop(key) for key in SECTIONS if key in data}
    if section:
        data = _section(source, rest, section)
    entries = sum(len(rows) for rows in data.values() if isinstance(rows, list))
    if max(entries, len(own)) > MAX_TILES:
        report.error("E902", f"{name} has {max(entries, len(own))} rows or architectures", None, f"at most {MAX_TILES}")
        report.finish()
    known = tuple(dict.fromkeys((*archs, *own)))
    rows: list[Row] = []
    for schedule, entries in data.items():
        key = f"{section}.{schedule}" if section else schedule
        if schedule not in forms.tiles:
            message = f"`{key}` is no list of a schedule"
            report.error("E902", message, _place(source, key), nearest(schedule, forms.tiles))
        elif not isinstance(entries, list):
            help_ = f"write `[[{key}]]` above the lines of each row"
            report.error("E902", f"`{key}` is no list of rows", _place(source, key), help_)
        else:
            for number, entry in enumerate(entries, 1):
                try:
                    rows.append(_row(schedule, entry, known, forms))
                except ValueError as error:
                    report.error("E902", f"{key}, row {number}: {error}", _place(source, key, number))
    report.finish()
    return TileTable(known, tuple(rows))


def own_archs(text: str, name: str) -> tuple[str, ...]:
    """The `archs` of a user's file, whatever else stands there. Raises SpecError (E902)."""
    source, report = Source(name, text), Collector()
    found = _archs(source, _toml(source), Forms({}, {}), report)
    report.finish()
    return found


def _archs(source: Source, data: Mapping[str, Any], forms: Forms, report: Collector) -> tuple[str, ...]:
    own = data.get("archs", [])
    if isinstance(own, list) and all(isinstance(a, str) and re.fullmatch(forms.archs, a) for a in own):
        return tuple(own)
    report.error("E902", '`archs` is a list of names such as "sm_90"', _place(source, "archs"))
    return ()


def _section(source: Source, found: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Raises SpecError (E902) for one that is no table."""
    section = found.get(name, {})
    if not isinstance(section, dict):
        help_ = f"write `[[{name}.contraction]]` above the lines of each row"
        raise SpecError([Diagnostic("E902", f"`{name}` is no table of schedules", _place(source, name), help_)])
    return section


def _place(source: Source, key: str, row: int = 1) -> Span:
    """Where a key of the file stands, or the head of one of its rows; at the worst, the beginning of the text."""
    heads = list(re.finditer(rf"^[ \t]*(\[\[[ \t]*|\[[ \t]*|)({re.escape(key)})\b", source.text, re.MULTILINE))
    if not heads:
        section, _, schedule = key.partition(".")
        return _place(source, section) if schedule else Span(source, 1, 1)
    found = heads[row - 1] if row <= len(heads) and heads[row - 1][1] else heads[0]
    line = source.text.count("\n", 0, found.start(2))
    return Span(source, line + 1, found.start(2) - found.start() + 1, len(key))


def _toml(source: Source) -> dict[str, Any]:
    """Raises SpecError (E902) for a text that is no TOML, or has lists in lists that no table has."""
    long = next((n for n, line in enumerate(source.lines, 1) if len(line) > MAX_TILE_LINE), None)
    if long is not None:
        help_ = f"at most {MAX_TILE_LINE} characters"
        raise SpecError([Diagnostic("E902", "this line is too long", Span(source, long, 1), help_)])
    try:
        return tomllib.loads(source.text)
    except RecursionError:
        found = Diagnostic("E902", f"{source.name}: lists or tables are nested too deeply")
    except ValueError as error:
        what, _, where = str(error).partition(" (at ")
        at = re.fullmatch(r"line (\d+), column (\d+)\)", where)
        last = source.text.rstrip().split("\n")
        span = Span(source, int(at[1]), int(at[2])) if at else Span(source, len(last), len(last[-1]) + 1)
        found = Diagnostic("E902", f"this is no TOML: {what[:1].lower()}{what[1:]}", span)
    raise SpecError([found])


def _row(schedule: str, entry: Any, archs: tuple[str, ...], forms: Forms) -> Row:
    """Raises ValueError."""
    if not isinstance(entry, dict):
        raise ValueError("not a table")
    tiles = forms.tiles[schedule]
    allowed = ("arch", "bytes", "rows", "when", "warps", "stages", *tiles)
    unknown = [k for k in entry if k not in allowed]
    missing = [k for k in ("warps", "stages", *tiles) if k not in entry]
    for what, keys in (("unknown", unknown), ("missing", missing)):
        if keys:
            raise ValueError(f"{what}: {', '.join(keys)}")
    own = tuple(str(entry.get("arch", " ".join(archs))).split())
    for arch in own:
        if arch not in archs:
            told = f"`archs` lists {', '.join(archs)}, each of which stands for later ones too"
            raise ValueError(f"unknown architecture `{arch}`; {told}")
    widths = (_width(entry["bytes"]),) if "bytes" in entry else WIDTHS
    rows = _number(entry, "rows") if "rows" in entry else None
    sizes = tuple((k, _tile(entry, k)) for k in tiles)
    config = Config(rows, _tile(entry, "warps"), _number(entry, "stages"), sizes)
    fault = forms.fault(schedule, config)
    if fault:
        raise ValueError(fault)
    return Row(schedule, own, widths, _conditions(forms.facts[schedule], str(entry.get("when", ""))), config)


def _width(value: object) -> int:
    if value not in WIDTHS:
        raise ValueError(f"`bytes` is 2 or 4, not {value!r}")
    assert isinstance(value, int)
    return value


def _number(entry: Mapping[str, Any], key: str) -> int:
    value = entry[key]
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MAX_TILE:
        raise ValueError(f"`{key}` is a positive number of at most {MAX_TILE}, not {value!r}")
    return value


def _tile(entry: Mapping[str, Any], key: str) -> int:
    value = _number(entry, key)
    if value & (value - 1):
        raise ValueError(f"`{key}` is a power of two, not {value}")
    return value


def _conditions(known: tuple[str, ...], text: str) -> tuple[tuple[str, str, int], ...]:
    """`H > 512 and H <= 1024`."""
    found: list[tuple[str, str, int]] = []
    for part in filter(None, (p.strip() for p in text.split(" and "))):
        match = CONDITION.fullmatch(part)
        if match is None or match[1] not in known:
            facts = ", ".join(known)
            raise ValueError(f"`when` has `{part}`; it compares {facts} with numbers, joined by `and`")
        found.append((match[1], match[2], int(match[3])))
    return tuple(found)


def next_power_of_two(n: int) -> int:
    """The smallest power of two that is at least `n`."""
    return 1 << max(0, n - 1).bit_length()
