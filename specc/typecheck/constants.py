"""The constants cell of a node: values for the sizes, numbers, flags and labels of its op."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields

from specc import syntax as s
from specc import syntax_spec as m
from specc.diagnostics import Collector, nearest
from specc.formula_text import expr_text
from specc.instantiate import Value, close_expr
from specc.ops import Logic, Num, Op, ParamSig, Size, walk
from specc.passes.constants import in_range
from specc.typecheck.known import Undefined, holds, value_of
from specc.typecheck.shapes import dim_names
from specc.typecheck.values import (
    Lookup,
    Meanings,
    Sizes,
    Table,
    as_real,
    attempt,
    condition,
    evaluate,
    mistake,
    natural,
    number,
    table,
)

FLAGS = {"True": True, "False": False}


@dataclass(frozen=True)
class Constants:
    """`shown`: as written in the cell, sorted by name. `names`: what names mean in the rest of the row. `complete`:
    whether all of them have values."""

    shown: tuple[tuple[str, Value], ...]
    names: Meanings
    complete: bool
    ops: tuple[Op, ...]

    def of(self, op: Op) -> dict[str, Value]:
        """The constants that `op` takes, defaults put in."""
        known = {p.name for p in op.params} | set(dim_names(op))
        values = {p.name: p.default for p in op.params if p.default is not None}
        return values | {n: v for n, v in self.shown if n in known}


def check_constants(row: m.Row, ops: tuple[Op, ...], names: Meanings, report: Collector) -> Constants:
    """Evaluates the cell from left to right; each constant is known to those after it. `ops`: the op of the
    row and its prefill form."""
    scope = Sizes(names)
    shown: dict[str, Value] = {}
    complete = True
    params = {p.name: p for op in reversed(ops) for p in op.params}
    known = (*params, *dim_names(ops[0]))
    for constant in row.constants:
        name = constant.name
        if name in shown:
            report.error("E204", f"constant `{name}` is given twice", constant.span)
            complete = False
            continue
        value = attempt(report, _value, constant, params, ops, row, table(scope))
        if value is None:
            complete = False
        else:
            shown[name] = value
        if not isinstance(value, str | bool):
            scope[name] = value
        if value is None and name not in known:
            for meant in known:
                scope.setdefault(meant, None)
    return Constants(tuple(sorted(shown.items())), scope, complete, ops)


def _value(
    constant: m.Constant, params: Mapping[str, ParamSig], ops: tuple[Op, ...], row: m.Row, lookup: Lookup
) -> Value:
    name = constant.name
    param = params.get(name)
    if param is None and name not in dim_names(ops[0]) and name not in used_names(row):
        raise mistake(
            "E231", f"`{ops[0].name}` has no constant `{name}`", constant.span, _meant(name, row, ops, lookup)
        )
    written = s.Name(constant.span, name) if constant.value is None else constant.value
    kind = "nat" if param is None else param.kind
    if kind in ("nat", "real") and isinstance(written, s.Name) and written.name in FLAGS:
        raise mistake("E233", f"`{name}` is a number, not `{written.name}`", written.span)
    match kind:
        case "flag":
            return _flag(name, written, lookup)
        case "label":
            return _label(name, written, param)
        case "real":
            value = as_real(evaluate(written, lookup))
            if any(isinstance(n, Size | Logic) for n in walk(value)):
                raise mistake("E233", f"`{name}` is to be a number that is known now", written.span)
            if any(isinstance(n, Num) and not in_range(n.value) for n in walk(value)):
                raise mistake("E203", "number out of range", written.span, "float64 does not reach it")
            try:
                value_of(value)
            except Undefined as error:
                raise mistake("E203", str(error), written.span) from None
            return value
    least = 0 if param is not None and name not in dim_names(ops[0]) else 1
    return number(natural(written, lookup, f"`{name}`", least))


def _meant(name: str, row: m.Row, ops: tuple[Op, ...], lookup: Lookup) -> str:
    """A suggestion for a constant that the op has not: the one that is missing, where `name` alone is its value."""
    given = {c.name: c.value for c in row.constants}
    params = {p.name: p for op in reversed(ops) for p in op.params}
    needed = [n for n in dict.fromkeys((*params, *dim_names(ops[0]))) if n not in params or params[n].default is None]
    missing = [n for n in needed if n not in given and not (n in params and params[n].optional)]
    size = isinstance(lookup, Table) and name in lookup.names
    if given[name] is None and size and len(missing) == 1:
        return f"did you mean `{missing[0]}={name}`?"
    return nearest(name, (*params, *dim_names(ops[0])))


def _flag(name: str, written: s.Expr, lookup: Lookup) -> bool:
    if isinstance(written, s.Name) and written.name in FLAGS:
        return FLAGS[written.name]
    if isinstance(written, s.Name | s.Number):
        raise mistake("E233", f"`{name}` is a flag", written.span, "write True or False")
    return condition(written, lookup)


def _label(name: str, written: s.Expr, param: ParamSig | None) -> str:
    if not isinstance(written, s.Name):
        raise mistake("E233", f"`{name}` is a label", written.span, "write a bare word")
    default = None if param is None else param.default
    if isinstance(default, str) and written.name != default:
        raise mistake("E233", f"`{name}` is `{default}` in this op, not `{written.name}`", written.span)
    return written.name


def used_names(row: m.Row) -> set[str]:
    """Names that the shapes of a row's wires and weights mention."""
    return {e.name for e in _names((row.applies, row.weights))}


def _names(value: object) -> Iterator[s.Name]:
    if isinstance(value, tuple):
        for v in value:
            yield from _names(v)
    elif isinstance(value, s.Name):
        yield value
    elif isinstance(value, s.Node):
        for f in fields(value):
            yield from _names(getattr(value, f.name))


def check_requires(op: Op, values: Mapping[str, Value], row: m.Row, final: bool = False) -> None:
    """Raises SpecError (E203, E236) for the first `require` of `op` that does not hold, or, where `values` are `final`,
    cannot be told."""
    for wanted in op.requires:
        names = list(dict.fromkeys(n.name for n in walk(wanted) if isinstance(n, Size)))
        span = next((c.span for c in row.constants if c.name in names), row.op.span)
        requires = f"`{op.name}` requires {expr_text(wanted)}"
        closed = close_expr(wanted, values)
        try:
            held = holds(closed)
        except Undefined as error:
            raise mistake("E203", f"{requires}; here this has no value: {error}", span) from None
        if held is False:
            given = [(n, v) for n in names if (v := values.get(n)) is not None and not isinstance(v, str | bool)]
            shown = ", ".join(f"{n}={expr_text(v)}" for n, v in given)
            raise mistake("E236", f"{requires}; here {shown}" if shown else requires, span)
        if held is None and final:
            unknown = next((n.name for n in walk(closed) if isinstance(n, Size)), "")
            raise mistake("E236", f"{requires}; here nothing gives a value to `{unknown}` before run time", span)


def check_params(op: Op, values: Mapping[str, Value], row: m.Row) -> None:
    """Raises SpecError (E232, E236) for a constant of `op` that nothing gives, or a `require` that fails already."""
    dims = dim_names(op)
    for p in op.params:
        if p.default is None and not p.optional and p.name not in dims:
            _check_given(p.name, op, values, row)
    check_requires(op, values, row)


def check_dims(op: Op, values: Mapping[str, Value], row: m.Row) -> None:
    """Raises SpecError (E232) for a dim of `op` that neither constants nor shapes give."""
    for name in dim_names(op):
        _check_given(name, op, values, row)


def _check_given(name: str, op: Op, values: Mapping[str, Value], row: m.Row) -> None:
    if name not in values:
        help_ = f"add `{name}=…` to the constants"
        raise mistake("E232", f"`{row.path}`: nothing gives `{name}` of `{op.name}`", row.op.span, help_)
