"""Float64 values of the tables that a launcher fills."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from specc.kernels import Table
from specc.ops import Formula, FormulaEquation, FormulaTensor, Num, Sort
from specc.oracle import evaluate


def table_values(table: Table) -> npt.NDArray[np.float64]:
    """The table's formula at every index, by the oracle."""
    tensor = FormulaTensor(table.name, (Num(Fraction(table.extent), Sort.INDEX),))
    formula = Formula("table", (), (FormulaEquation(tensor, (table.var,), table.expr),))
    return evaluate(formula, {})[table.name]
