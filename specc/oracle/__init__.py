"""The meaning of a formula in numbers: float64 by definition, more digits where float64 is not enough.

Shares no code with lowering.
"""

from specc.oracle.api import evaluate

__all__ = ["evaluate"]
