"""How large a formula becomes when everything in it is written out, told before any of it is."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from specc import syntax as s
from specc.ops import Apply, Bin, Expr, Formula, Num, Reduce, ScalarDef, Var, children
from specc.passes.powers import LARGEST, LONGEST
from specc.passes.unroll import LARGEST as MOST_UNROLLED
from specc.passes.unroll import LONGEST as LONGEST_SUM


@dataclass(frozen=True)
class Measure:
    """Nodes and depth of an expression; `times`: how often a parameter of the function that it belongs to occurs."""

    nodes: int
    depth: int
    times: dict[str, int] = field(default_factory=dict)

    def scaled(self, by: int) -> Measure:
        return Measure(by * self.nodes, self.depth, {name: by * n for name, n in self.times.items()})


def _sum(parts: list[Measure]) -> Measure:
    times: dict[str, int] = {}
    for part in parts:
        for name, n in part.times.items():
            times[name] = times.get(name, 0) + n
    return Measure(1 + sum(p.nodes for p in parts), 1 + max((p.depth for p in parts), default=0), times)


class Meter:
    """Measures expressions; each function, and each expression that occurs twice, once."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Expr | ScalarDef, Measure]] = {}

    def function(self, fn: ScalarDef) -> Measure:
        """Of the larger form of `fn`."""
        found = self._known.get(id(fn))
        if found is None:
            forms = [self.of(form) for form in (fn.body, fn.computed) if form is not None]
            times = {p.name: max(1, *(f.times.get(p.name, 0) for f in forms)) for p in fn.params}
            found = fn, Measure(max(f.nodes for f in forms), max(f.depth for f in forms), times)
            self._known[id(fn)] = found
        return found[1]

    def of(self, e: Expr) -> Measure:
        found = self._known.get(id(e))
        if found is None:
            found = self._known[id(e)] = e, self._of(e)
        return found[1]

    def _of(self, e: Expr) -> Measure:
        match e:
            case Var(name):
                return Measure(1, 1, {name: 1})
            case Apply(fn, args):
                return self._applied(
                    self.function(fn), [(p.name, self.of(a)) for p, a in zip(fn.params, args, strict=True)]
                )
            case Bin("^", base, Num(n)):
                return _sum([self.of(base).scaled(_factors(n))])
            case Reduce(_, _, Num(n), _, _) if 0 < n <= LONGEST_SUM:
                whole = _sum([self.of(c) for c in children(e)])
                return whole.scaled(int(n)) if whole.nodes * n <= MOST_UNROLLED else whole
        return _sum([self.of(c) for c in children(e)])

    def _applied(self, fn: Measure, args: list[tuple[str, Measure]]) -> Measure:
        parts = [arg.scaled(fn.times[name]) for name, arg in args]
        whole = _sum(parts)
        return Measure(whole.nodes + fn.nodes, whole.depth + fn.depth, whole.times)

    def formula(self, formula: Formula) -> Measure:
        """Of all equations and recurrences."""
        exprs = [q.expr for q in formula.equations] + [e for r in formula.recs for e in (r.init, r.step)]
        return _sum([self.of(e) for e in exprs])


def _factors(n: Fraction) -> int:
    """How often the base of a power to the `n` is written."""
    return 1 if n.denominator == 1 and 0 <= n <= LONGEST else int(min(abs(n), Fraction(LARGEST))) // LONGEST + 2


def height(e: s.Expr) -> int:
    """Levels of an expression as it is written."""
    level: list[object] = [e]
    levels = 0
    while level:
        levels += 1
        level = [part for node in level for part in _parts(node)]
    return levels


def operations(e: s.Expr) -> int:
    """Nodes of an expression as it is written."""
    count, rest = 0, [e]
    while rest:
        count += 1
        rest += _parts(rest.pop())
    return count


def _parts(node: object) -> list[s.Expr]:
    found: list[s.Expr] = []
    for value in vars(node).values():
        found += [v for v in (value if isinstance(value, tuple) else (value,)) if isinstance(v, s.Expr)]
    return found
