"""Rows of the page's tables, read off the model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from specc.format import format_value
from specc.formula_text import expr_text, formula_text
from specc.ir import BoundOp, Model, NodeVariant, Phase, Piece, Role, Weight
from specc.ops import Apply, Expr, Formula, ScalarDef, Sort, walk


def main_phase(node: NodeVariant) -> Phase:
    """The phase that the page's table names: that of the node's own op."""
    return node.bound[-1][0]


def layers_text(node: NodeVariant, count: int) -> str:
    """`—`, `all 60`, `10: 5, 11, …, 59`, or `50: all but 5, 11, …, 59`."""
    if node.layers is None:
        return "—"
    if len(node.layers) == count:
        return f"all {count}"
    rest = tuple(n for n in range(count) if n not in node.layer_set)
    shown = few(node.layers) if len(node.layers) <= len(rest) else f"all but {few(rest)}"
    return f"{len(node.layers)}: {shown}"


def few(numbers: tuple[int, ...]) -> str:
    """`5, 11, …, 59`."""
    shown = numbers if len(numbers) < 5 else (numbers[0], numbers[1], "…", numbers[-1])
    return ", ".join(map(str, shown))


def constants_text(node: NodeVariant) -> str:
    return ", ".join(f"{name}={format_value(value)}" for name, value in node.constants)


def node_formula(node: NodeVariant, phase: Phase) -> tuple[str, ...]:
    """The lines of the first application's formula; the others differ in shapes only."""
    return formula_text(node.phase(phase)[0].formula)


def tensors(node: NodeVariant, phase: Phase) -> tuple[tuple[str, tuple[Expr, ...]], ...]:
    """Names and dims of what a node reads and gives, weights apart. A node that applies its op several times names what
    each application reads `label` and what it gives `label_out`; what they share is named once."""
    bound = node.phase(phase)
    labels = [a.label for a in node.applications]
    mains = [_main(b) if label else None for b, label in zip(bound, labels, strict=True)]
    first: dict[str, tuple[Expr, ...]] = {}
    rest: dict[str, tuple[Expr, ...]] = {}
    given: dict[str, tuple[Expr, ...]] = {}
    for b, label, main in zip(bound, labels, mains, strict=True):
        for t in b.formula.inputs:
            if dict(b.roles)[t.name] is not Role.WEIGHT:
                (first if t.name == main else rest).setdefault(label if label and t.name == main else t.name, t.dims)
        outputs = b.formula.outputs
        for t in outputs:
            suffix = "out" if len(outputs) == 1 else t.name
            given.setdefault(f"{label}_{suffix}" if label else t.name, t.dims)
    return (*first.items(), *rest.items(), *given.items())


def _main(bound: BoundOp) -> str | None:
    """The operand that an application's label stands for: the first that holds reals and is no weight."""
    roles = dict(bound.roles)
    return next(
        (t.name for t in bound.formula.inputs if t.sort is Sort.REAL and roles[t.name] is not Role.WEIGHT), None
    )


def functions(formulas: Iterator[Formula]) -> tuple[ScalarDef, ...]:
    """The scalar functions that formulas name; see `called`."""
    return called(e for f in formulas for e in (*(r.step for r in f.recs), *(q.expr for q in f.equations)))


def called(exprs: Iterable[Expr]) -> tuple[ScalarDef, ...]:
    """The scalar functions that `exprs` name, those that these name among them, sorted by name."""
    found: dict[str, ScalarDef] = {}

    def visit(e: Expr) -> None:
        for x in walk(e):
            if isinstance(x, Apply) and x.fn.name not in found:
                found[x.fn.name] = x.fn
                visit(x.fn.body)
                if x.fn.computed is not None:
                    visit(x.fn.computed)

    for expr in exprs:
        visit(expr)
    return tuple(found[name] for name in sorted(found))


def model_functions(model: Model) -> tuple[ScalarDef, ...]:
    return functions(b.formula for n in model.nodes for _, bound in n.bound for b in bound)


def function_text(fn: ScalarDef) -> tuple[str, ...]:
    """`silu(x) = x · sigmoid(x)`, and the form in which it is computed, if that is another one."""
    head = f"{fn.name}({', '.join(p.name for p in fn.params)})"
    computed = () if fn.computed is None else (f"  computed as {expr_text(fn.computed)}",)
    return (f"{head} = {expr_text(fn.body)}", *computed)


def weight_text(weight: Weight) -> str:
    """The checkpoint tensors of a weight, concatenated along the first axis by `++`."""
    if weight.tied is not None:
        return f"tied to {'.'.join(weight.tied)}"
    return " ++ ".join(_piece(p) for p in weight.pieces)


def _piece(piece: Piece) -> str:
    whole = all((low, high) == (0, size) for low, high, size in piece.view)
    rows = "" if whole else "[" + ", ".join(f"{low}:{high} of {size}" for low, high, size in piece.view) + "]"
    return piece.name + rows
