"""The weights of a node, and whether the pieces of all weights tile the checkpoint's tensors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod

from specc import syntax as s
from specc import syntax_spec as m
from specc.diagnostics import Collector, nearest
from specc.ir import Piece, Weight
from specc.limits import MAX_RUNS
from specc.typecheck.values import Lookup, Meanings, attempt, mistake, natural, table

Taken = dict[str, list[tuple[Piece, m.Piece]]]


def check_weights(
    row: m.Row, names: Meanings, checkpoint: m.Checkpoint | None, report: Collector
) -> tuple[tuple[Weight, ...], bool]:
    """The weights of a row where `names` hold, without pieces where these are wrong, and whether all is right;
    mistakes go to `report`."""
    found: dict[str, Weight] = {}
    right = True
    for written in row.weights:
        shape = _shape(written, table(names), report)
        if written.name in found:
            report.error("E204", f"weight `{written.name}` is given twice", written.span)
        if written.name in found or shape is None:
            right = False
            _check_views(written, table(names), report)
            continue
        weight = attempt(report, _weight, written, shape, row, table(names), checkpoint)
        found[written.name] = weight or Weight(written.name, shape, ())
        right = right and weight is not None
    return tuple(found.values()), right


def _shape(written: m.Weight, lookup: Lookup, report: Collector) -> tuple[int, ...] | None:
    """None where it has mistakes, all of which are reported."""
    if not written.dims:
        report.error("E264", f"weight `{written.name}` has no shape", written.span)
        return None
    sizes = [attempt(report, natural, d, lookup, f"a dimension of `{written.name}`") for d in written.dims]
    return None if None in sizes else tuple(n for n in sizes if n is not None)


def _check_views(written: m.Weight, lookup: Lookup, report: Collector) -> None:
    """Mistakes in the views of a weight's pieces, where its shape is not known."""
    for piece in () if isinstance(written.value, m.Tied) else written.value:
        for axis in piece.view:
            attempt(report, _axis, axis, lookup)


def _weight(
    written: m.Weight, shape: tuple[int, ...], row: m.Row, lookup: Lookup, checkpoint: m.Checkpoint | None
) -> Weight:
    if isinstance(written.value, m.Tied):
        return Weight(written.name, shape, (), (written.value.node, written.value.weight))
    prefix = _prefix(row, checkpoint)
    alone = len(written.value) == 1
    pieces = tuple(_piece(p, shape, alone, prefix, lookup) for p in written.value)
    rows = sum(p.row_count for p in pieces)
    if rows != shape[0]:
        listed = " + ".join(str(p.row_count) for p in pieces)
        message = f"`{written.name}` has {shape[0]} rows, its pieces have {listed}"
        raise mistake("E260", message + (f" = {rows}" if len(pieces) > 1 else ""), written.span)
    return Weight(written.name, shape, pieces)


def _prefix(row: m.Row, checkpoint: m.Checkpoint | None) -> str:
    if checkpoint is None:
        return ""
    return checkpoint.layers if row.layers.name != "-" and checkpoint.layers is not None else checkpoint.prefix


def _piece(p: m.Piece, shape: tuple[int, ...], alone: bool, prefix: str, lookup: Lookup) -> Piece:
    name = p.name[1:] if p.name.startswith("/") else prefix + p.name
    if p.view:
        view = tuple(_axis(a, lookup) for a in p.view)
    elif alone:
        view = ((0, shape[0], shape[0]),)
    else:
        raise mistake("E260", f"how many rows has {p.name!r}?", p.span, 'write `"…"[rows]`')
    rows = prod(size for _, _, size in view)
    full = (rows, *shape[1:])
    if p.full is not None:
        full = tuple(natural(d, lookup, f"a dimension of {p.name!r}") for d in p.full)
        if full[:1] != (rows,) or prod(full[1:]) != prod(shape[1:]):
            message = f"{p.name!r} as {list(full)} does not hold {rows} rows of {list(shape[1:])}"
            raise mistake("E260", message, p.span)
    return Piece(name, view, full)


def _axis(a: m.ViewAxis, lookup: Lookup) -> tuple[int, int, int]:
    size = natural(a.size, lookup, "a number of rows")
    if a.low is None or a.high is None:
        return 0, size, size
    low, high = natural(a.low, lookup, "the first row", 0), natural(a.high, lookup, "the end of the rows", 0)
    if not low < high <= size:
        raise mistake("E260", f"rows {low} : {high} of {size} are no rows", a.span)
    return low, high, size


def runs(piece: Piece) -> list[tuple[int, int]]:
    """The runs of consecutive rows that a piece takes from its tensor, in order."""
    found = [(0, 1)]
    for low, high, size in piece.view:
        whole = low == 0 and high == size
        found = [
            (start * size + (0 if whole else low), end * size if whole else start * size + high)
            for start, end in (found if whole else ((x, x + 1) for a, b in found for x in range(a, b)))
        ]
    return found


def check_tiling(taken: Taken, report: Collector) -> None:
    """Reports tensors of a checkpoint whose rows are taken twice, or not all, or whose shapes differ
    (E261)."""
    total = 0
    for name, uses in taken.items():
        piece, at = uses[0]
        total += sum(prod(n for _, _, n in p.view[:-1]) for p, _ in uses)
        other = next((p for p, _ in uses if p.full != piece.full), None)
        if other is not None:
            message = f"{name!r} is {list(piece.full)} in one place and {list(other.full)} in another"
            report.error("E261", message, at.span)
        elif total > MAX_RUNS:
            help_ = f"at most {MAX_RUNS} runs in all weights"
            report.error("E261", f"{name!r} is cut into too many runs of rows", at.span, help_)
            return
        else:
            _check_rows(name, piece.full[0], uses, report)


def _check_rows(name: str, rows: int, uses: list[tuple[Piece, m.Piece]], report: Collector) -> None:
    ordered = sorted((run, i) for i, (piece, _) in enumerate(uses) for run in runs(piece))
    end = 0
    for (low, high), i in ordered:
        if low < end:
            help_ = "a weight that two nodes share is written `tied node.weight`"
            report.error("E261", f"rows {low} : {min(high, end)} of {name!r} are taken twice", uses[i][1].span, help_)
            return
        if low > end:
            report.error("E261", f"rows {end} : {low} of {name!r} belong to no weight", uses[i][1].span)
            return
        end = high
    if end < rows:
        report.error("E261", f"rows {end} : {rows} of {name!r} belong to no weight", uses[-1][1].span)


def take(taken: Taken, weights: Iterable[Weight], row: m.Row) -> None:
    """Notes which pieces the weights of a row take."""
    written = {w.name: w.value for w in row.weights}
    for weight in weights:
        value = written[weight.name]
        if isinstance(value, tuple):
            for piece, p in zip(weight.pieces, value, strict=True):
                taken.setdefault(piece.name, []).append((piece, p))


def check_tied(
    row: m.Row,
    weights: tuple[Weight, ...],
    flag: bool | None,
    known: Mapping[tuple[str, str], tuple[int, ...]],
) -> None:
    """Raises SpecError (E263) where a tied weight has no partner, another shape, or contradicts the flag
    `tied`."""
    tied = [w for w in weights if w.tied is not None]
    if flag is not None and flag != bool(tied):
        has = "a tied weight" if tied else "no tied weight"
        span: s.Node = next((c for c in row.constants if c.name == "tied"), row)
        raise mistake("E263", f"`{row.path}` says tied={flag} and has {has}", span.span)
    for w in tied:
        assert w.tied is not None
        written = next(x for x in row.weights if x.name == w.name)
        if w.tied not in known:
            raise mistake(
                "E263",
                f"no weight `{'.'.join(w.tied)}` outside of the layers to be tied to",
                written.value.span if isinstance(written.value, m.Tied) else None,
                nearest(".".join(w.tied), (f"{node}.{name}" for node, name in known if node != row.path)),
            )
        if known[w.tied] != w.shape:
            message = f"`{w.name}` is {list(w.shape)}, `{'.'.join(w.tied)}` is {list(known[w.tied])}"
            raise mistake("E263", message, written.span)


def tied_nodes(row: m.Row) -> tuple[str, ...]:
    """The nodes to whose weights the weights of a row are tied."""
    return tuple(w.value.node for w in row.weights if isinstance(w.value, m.Tied))
