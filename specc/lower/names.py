"""Names for reads, stages and accumulators that nothing else in a kernel has."""

from __future__ import annotations

from collections.abc import Iterable

from specc.ops import Expr, Formula, Load, Reduce, Size, Softmax, Var, fresh, walk


class Names:
    """`operands` keep their names for their reads where they can; everything else steps aside."""

    def __init__(self, taken: Iterable[str], operands: Iterable[str]) -> None:
        self.taken, self.operands = set(taken), set(operands)
        self.reads: dict[tuple[str, tuple[Expr, ...]], str] = {}

    def internal(self, stem: str) -> str:
        """A name for something that is no read of an operand."""
        name = fresh(stem, self.taken | self.operands)
        self.taken.add(name)
        return name

    def stage(self, stem: str) -> str:
        """A name for a reduction, whose raw result is called `…_raw`."""
        taken = self.taken | self.operands
        name = fresh(stem, taken | {n.removesuffix("_raw") for n in taken if n.endswith("_raw")})
        self.taken |= {name, f"{name}_raw"}
        return name

    def operand(self, stem: str) -> str:
        """A name for an operand that the formula does not have, such as a table."""
        name = fresh(stem, self.taken | self.operands)
        self.operands.add(name)
        return name

    def read(self, tensor: str, indices: tuple[Expr, ...], stem: str) -> str:
        """The name of a read; the same read always has the same name."""
        key = (tensor, indices)
        if key not in self.reads:
            self.reads[key] = fresh(stem, self.taken)
            self.taken.add(self.reads[key])
        return self.reads[key]


def names_of(formula: Formula) -> Names:
    """Names that keep clear of the index variables and sizes of `formula`."""
    exprs = [e for q in formula.equations for e in (q.expr, *q.tensor.dims)]
    exprs += [d for t in formula.inputs for d in t.dims]
    taken = {i for q in formula.equations for i in q.indices}
    for node in (n for e in exprs for n in walk(e)):
        if isinstance(node, Var | Size):
            taken.add(node.name)
        elif isinstance(node, Reduce | Softmax):
            taken.add(node.var)
    read = {n.tensor for e in exprs for n in walk(e) if isinstance(n, Load)}
    return Names(taken, read | {t.name for t in (*formula.inputs, *formula.outputs)})
