"""Parts of an op library that are made of numbers alone, and have no value: `x / 0`, `log(0)`."""

from __future__ import annotations

from collections.abc import Iterator

from specc import syntax as s
from specc.diagnostics import Collector
from specc.instantiate import compare
from specc.ops import ELEMENTARY
from specc.typecheck.known import Known, Undefined, arithmetic, function


def check_literals(item: s.Def | s.Op, report: Collector) -> None:
    """Reports what has no value in a function or an op, whatever its operands and constants are (E203)."""
    for e in _expressions(item):
        _value(e, report)


def _expressions(item: s.Def | s.Op) -> Iterator[s.Expr]:
    yield from (p.default for p in item.params if p.default is not None)
    if isinstance(item, s.Def):
        yield from (e for e in (item.body, item.computed) if e is not None)
        return
    yield from (d for t in (*item.inputs, *item.outputs) for d in t.dims)
    for part in item.body:
        match part:
            case s.Let() | s.Equation():
                yield part.body
            case s.Rec():
                yield from (*(extent for _, extent in part.indices), part.init, part.step)
            case s.Require():
                yield part.condition


def _value(e: s.Expr, report: Collector) -> Known:
    """The value of a number; None for anything else, and for what has no value, once that is reported."""
    try:
        return _known(e, report)
    except Undefined as error:
        report.error("E203", str(error), e.span)
        return None


def _known(e: s.Expr, report: Collector) -> Known:
    match e:
        case s.Number(_, value):
            return value
        case s.Unary(_, "-", arg):
            inner = _value(arg, report)
            return None if inner is None else -inner
        case s.Binary(_, "and" | "or", left, right):
            _all((left, right), report)
        case s.Binary(_, op, left, right):
            return arithmetic(op, _value(left, report), _value(right, report))
        case s.Call(_, name, args):
            values = _all(args, report)
            return function(name, values) if ELEMENTARY.get(name) == len(args) else None
        case s.If(_, cond, then, other):
            chosen = _holds(cond, report)
            if chosen is not None:
                return _value(then if chosen else other, report)
            _all((then, other), report)
        case s.Chain() | s.Unary():
            _holds(e, report)
        case s.Index(_, _, indices):
            _all(indices, report)
        case s.Big(_, _, _, bound, predicate, body):
            _all((bound, predicate, body), report)
        case s.Softmax(_, _, score, predicate):
            _all((score, predicate), report)
    return None


def _all(parts: tuple[s.Expr | None, ...], report: Collector) -> list[Known]:
    return [_value(e, report) for e in parts if e is not None]


def _holds(e: s.Expr, report: Collector) -> bool | None:
    match e:
        case s.Chain(_, ops, args):
            found = [v for v in _all(args, report) if v is not None]
            return all(map(compare, ops, found, found[1:])) if len(found) == len(args) else None
        case s.Unary(_, "not", arg):
            inner = _holds(arg, report)
            return None if inner is None else not inner
    _value(e, report)
    return None
