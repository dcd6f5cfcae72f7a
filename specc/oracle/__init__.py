"""The meaning of a formula in numbers: float64 by definition, more digits where float64 is not enough.

Shares no code with lowering.
"""

from specc.oracle.api import Within, evaluate, evaluate_within, precise, uncertainty

__all__ = ["Within", "evaluate", "evaluate_within", "precise", "uncertainty"]
