"""How much may be written in one op library, and how deep, once lets and functions are put in."""

from __future__ import annotations

from dataclasses import dataclass

from specc.diagnostics import Diagnostic, Stop
from specc.limits import MAX_DEPTH, MAX_FORMULA, MAX_LIBRARY
from specc.source import Span
from specc.typecheck.measure import Measure

TOO_LARGE = "is too large with lets and functions put in, and powers and short sums written out"
AT_MOST = f"at most {MAX_FORMULA} operations and names"


@dataclass
class Budget:
    """What a library may still need: `nodes` for all its items, `here` for the item that is typed; and how deep
    elaboration stands in it, and in what it is made of."""

    nodes: int = MAX_LIBRARY
    here: int = MAX_FORMULA
    depth: int = 0

    def enter(self, span: Span) -> None:
        """One more node, inside of those that were entered and not left. Raises Stop (E107, E323)."""
        self.nodes, self.here, self.depth = self.nodes - 1, self.here - 1, self.depth + 1
        if self.depth > MAX_DEPTH:
            help_ = f"at most {MAX_DEPTH} levels, those of lets and functions counted"
            raise Stop([Diagnostic("E107", "this is nested too deeply", span, help_)])
        if self.here < 0:
            raise Stop([Diagnostic("E323", f"this formula {TOO_LARGE}", span, AT_MOST)])
        if self.nodes < 0:
            help_ = f"at most {MAX_LIBRARY} operations and names with lets put in"
            raise Stop([Diagnostic("E323", "the op libraries together are too large", span, help_)])

    def check(self, measure: Measure, span: Span) -> None:
        """Raises Stop (E107, E323) for a formula that becomes too large or too deep."""
        if measure.nodes > MAX_FORMULA:
            raise Stop([Diagnostic("E323", f"this formula {TOO_LARGE}", span, AT_MOST)])
        if measure.depth > MAX_DEPTH:
            help_ = f"at most {MAX_DEPTH} levels with lets and functions put in"
            raise Stop([Diagnostic("E107", "this is nested too deeply", span, help_)])
