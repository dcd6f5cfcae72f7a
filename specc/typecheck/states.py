"""What the rows of a layer do to a state: the order of rows means nothing, so each state changes in one way."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from specc import syntax_spec as m
from specc.diagnostics import Collector
from specc.source import Span

Use = tuple[m.Row, m.Apply]


def check_states(rows: Sequence[m.Row], states: Iterable[str], report: Collector) -> None:
    """Mistakes in what `rows`, those of one layer, do to `states` (E256)."""
    uses = [(row, apply) for row in rows for apply in row.applies]
    for state in states:
        if not any(out.wire == state for _, apply in uses for out in apply.outs):
            _check_appended(state, uses, report)
        else:
            _check_replaced(state, uses, report)


def check_outside(rows: Iterable[m.Row], states: Iterable[str], report: Collector) -> set[int]:
    """Reports the states that `rows`, which stand outside of the layers, use (E256). Gives the ids of those rows."""
    known, found = set(states), set[int]()
    for row, apply in ((r, a) for r in rows for a in r.applies):
        for name, span in _named(apply):
            if name in known:
                message = f"`{name}` is a state of the layers, `{row.path}` stands outside"
                report.error("E256", message, span)
                found.add(id(row))
    return found


def _named(apply: m.Apply) -> list[tuple[str, Span]]:
    read = [(a.wire, a.span) if a.state is None else (a.state.name, a.state.span) for a in apply.args]
    return read + [(o.wire, o.span) for o in apply.outs]


def _check_appended(state: str, uses: Sequence[Use], report: Collector) -> None:
    first = ""
    for _, apply in uses:
        for arg in apply.args:
            if arg.state is None or arg.state.name != state:
                continue
            first = first or arg.wire
            if arg.wire != first:
                message = f"`{first}` is appended to `{state}` in the same layer, `{arg.wire}` is too"
                report.error("E256", message, arg.state.span, "give each of them a state of its own")


def _check_replaced(state: str, uses: Sequence[Use], report: Collector) -> None:
    """A state that is replaced is used once: otherwise the order of rows would tell what is read."""
    touching = [(row, apply) for row, apply in uses if any(name == state for name, _ in _named(apply))]
    row, _ = next((row, apply) for row, apply in touching if any(o.wire == state for o in apply.outs))
    written = [out for _, apply in touching for out in apply.outs if out.wire == state]
    for out in written[1:]:
        report.error("E256", f"`{state}` is replaced twice in a layer, first by `{row.path}`", out.span)
    for other, apply in touching:
        if all(out.wire != state for out in apply.outs):
            span = next(span for name, span in _named(apply) if name == state)
            message = f"`{other.path}` reads `{state}`, which `{row.path}` replaces in the same layer"
            report.error("E256", message, span, "rows have no order; let one row do both")
