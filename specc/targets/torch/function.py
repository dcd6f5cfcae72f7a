"""One formula as one Python function: operands widened to the accumulator, results rounded to their storage type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from specc.formula_text import dims_text, expr_text, formula_text
from specc.ir import Role
from specc.ops import (
    Expr,
    Formula,
    FormulaEquation,
    FormulaTensor,
    Load,
    Recurrence,
    Select,
    Size,
    Sort,
    State,
    Var,
    rebuild,
    walk,
)
from specc.targets.divisors import divisors
from specc.targets.torch.affine import integer, minus, same
from specc.targets.torch.arrays import Lowerer, size_names
from specc.targets.torch.code import Code, call
from specc.targets.torch.prepare import Repeat, gathered, plain, segments, spread_heads
from specc.targets.torch.scalars import Function, Helpers
from specc.targets.torch.scope import Block, Frame, Kind, Names, Operand, Value


class Sizes(Mapping[str, str]):
    """Names of run-time sizes; remembers which were asked for."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self.names = dict(names)
        self.used: dict[str, None] = {}

    def __getitem__(self, size: str) -> str:
        """Raises ValueError for a size that no operand has as a dimension of its own."""
        if size not in self.names:
            raise ValueError(f"no operand shows the run-time size `{size}`")
        self.used.setdefault(size)
        return self.names[size]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


def print_formula(
    formula: Formula,
    roles: Mapping[str, Role],
    name: str,
    helpers: Helpers,
    rounds: Mapping[str, Role] | None = None,
    doc: Sequence[str] = (),
) -> Function:
    """The function `name(inputs…, p)`. `rounds` maps a let (or `softmax`) to the role in whose type it is stored."""
    printer = _Printer(formula, roles, helpers, {k: str(v) for k, v in (rounds or {}).items()})
    body = printer.body()
    params = [f"{printer.python[t.name]}: Tensor" for t in formula.inputs]
    result = "Tensor" if len(formula.equations) == 1 else f"tuple[{', '.join(['Tensor'] * len(formula.equations))}]"
    text = (*doc, *formula_text(formula), "", shapes_text(formula))
    return Function(name, (*params, "p: Precision"), result, text, tuple(body))


def shapes_text(formula: Formula) -> str:
    """`x [T, 5376], w [5376] -> y [T, 5376]`."""

    def listed(tensors: Sequence[FormulaTensor]) -> str:
        return ", ".join(f"{t.name} {dims_text(t.dims)}" for t in tensors)

    return f"{listed(formula.inputs)} -> {listed(formula.outputs)}"


class _Printer:
    def __init__(
        self, formula: Formula, roles: Mapping[str, Role], helpers: Helpers, rounds: Mapping[str, str]
    ) -> None:
        self.written, self.roles = formula, roles
        self.formula, self.repeats = spread_heads(plain(formula))
        self.names = Names(set(helpers.names.taken))
        for e in (*(q.expr for q in formula.equations), *(r.step for r in formula.recs)):
            self.names.taken |= helpers.reserve(e)
        self.python = {t.name: self.names.fresh(t.name) for t in formula.inputs}
        known = size_names([(self.python[t.name], t.dims) for t in formula.inputs])
        self.shapes = known
        self.sizes = Sizes({size: self.names.fresh(size) for size in known})
        self.block = Block(self.names)
        first = self.python[formula.inputs[0].name] if formula.inputs else None
        self.low = Lowerer(
            self.block,
            helpers,
            {t.name: self._operand(t) for t in self.formula.inputs},
            sizes=self.sizes,
            rounds=rounds,
            device=f"{first}.device" if first else "None",
        )

    def _operand(self, t: FormulaTensor) -> Operand:
        kind = Kind.DATA if t.sort is Sort.REAL else Kind.INDEX
        cast = kind is Kind.DATA and gathered(self.formula, t.name)
        return Operand(Code(self.python[t.name]), t.dims, kind, cast)

    def body(self) -> list[str]:
        repeats = [self._repeat(r) for r in self.repeats]
        results = self._recurrent() if self.formula.recs else [self._equation(q) for q in self.formula.equations]
        stored = [
            f"{r.text}.to(p.{self._role(q.tensor)})" for r, q in zip(results, self.formula.equations, strict=True)
        ]
        loads = [*self._refusals(), *self._loads(), *self._fill(), *repeats]
        return [*self._sizes(), *loads, *self.block.lines, f"return {', '.join(stored)}"]

    def _role(self, t: FormulaTensor) -> Role:
        return self.roles.get(t.name, Role.ACTIVATION)

    def _sizes(self) -> list[str]:
        used = list(self.sizes.used)
        if not used:
            return []
        return [f"{', '.join(self.sizes.names[u] for u in used)} = {', '.join(self.shapes[u] for u in used)}"]

    def _refusals(self) -> list[str]:
        """Statements that raise ValueError where a size that integers are divided by is 0."""
        recs = tuple((r.indices, _certain(r.init), _certain(r.step)) for r in self.formula.recs)
        found = divisors((recs, tuple((q.tensor, _certain(q.expr)) for q in self.formula.equations)))
        message = "is 0, and the formula divides by it"
        tests = [(self.low.number(d).text, expr_text(d)) for d in found]
        return [line for n, t in tests for line in (f"if {n} == 0:", f'    raise ValueError("{t} {message}")')]

    def _loads(self) -> list[str]:
        operands = [o for t in self.formula.inputs if (o := self.low.tensors[t.name]).kind is Kind.DATA and not o.cast]
        names = [o.code.text for o in operands]
        match names:
            case []:
                return []
            case [name]:
                return [f"{name} = {name}.to(p.accumulator)"]
        return [f"{', '.join(names)} = p.load({', '.join(names)})"]

    def _fill(self) -> list[str]:
        """A row for operands without rows that results of other lengths read where a condition chooses."""
        lines = []
        for t in self.formula.inputs:
            size = t.dims[0] if t.dims else None
            others = [q for q in self.formula.equations if size not in q.tensor.dims]
            chosen = [n for q in others for s in walk(q.expr) if isinstance(s, Select) for n in walk(s)]
            if isinstance(size, Size) and any(isinstance(n, Load) and n.tensor == t.name for n in chosen):
                x = self.python[t.name]
                lines.append(f"{x} = {x} if len({x}) else {x}.new_zeros(1, *{x}.shape[1:])")
        return lines

    def _repeat(self, r: Repeat) -> str:
        name = self.python[r.tensor]
        return f"{name} = {name}.repeat_interleave({self.low.number(r.times).text}, dim={r.axis})"

    def _equation(self, q: FormulaEquation) -> Code:
        code = self._value(q, self.low).code
        return code if code.simple else self.block.assign(q.tensor.name, code)

    def _value(self, q: FormulaEquation, low: Lowerer) -> Value:
        """The whole of a result, every axis at its full size."""
        low = low.inside(**dict(zip(q.indices, q.tensor.dims, strict=True)))
        cut = segments(q)
        if cut is None or len(cut[1]) == 1:
            expr = q.expr if cut is None else cut[1][0].expr
            return self._full(q, expr, low)
        axis = q.indices.index(cut[0])
        parts: list[str] = []
        for segment in cut[1]:
            dims = (*q.tensor.dims[:axis], segment.extent, *q.tensor.dims[axis + 1 :])
            part = replace(q, tensor=replace(q.tensor, dims=dims), expr=segment.expr)
            parts.append(self.block.assign(f"{q.tensor.name}{len(parts)}", self._value(part, low).code).text)
        dim = -1 if axis == len(q.indices) - 1 else axis
        return Value(call("torch.cat", f"({', '.join(parts)})", f"dim={dim}"), Kind.DATA, q.indices)

    def _full(self, q: FormulaEquation, expr: Expr, low: Lowerer) -> Value:
        value = low.lower(expr, q.indices)
        if value.kind is Kind.CONST:
            shape = [low.number(d).text for d in q.tensor.dims]
            made = call("torch.full", f"[{', '.join(shape)}]", value.code, f"dtype={low.dtype}", f"device={low.device}")
            return Value(made, Kind.DATA, q.indices)
        if value.kind is not Kind.DATA:
            value = Value(low.to_accumulator(value.code), Kind.DATA, value.axes)
        if value.axes == q.indices:
            return value
        shape = [low.number(d).text for d in q.tensor.dims]
        return Value(value.code.method("expand", *shape), value.kind, q.indices)

    def _recurrent(self) -> list[Code]:
        """The sequential form: one state, carried through the steps; results that read it at their own step alone
        are filled in the same loop."""
        if len(self.formula.recs) > 1:
            raise ValueError(f"`{self.formula.op}` has more than one recurrence; the reference prints one")
        (rec,) = self.formula.recs
        fused = {q.tensor.name for q in self.formula.equations if _reads_own_step(q, rec)}
        last = {q.tensor.name for q in self.formula.equations if _reads_last_step(q, rec)}
        rest = [q for q in self.formula.equations if q.tensor.name not in fused]
        keep = any(isinstance(e, State) for q in rest if q.tensor.name not in last for e in walk(q.expr))
        outs = {
            q.tensor.name: self._empty(q.tensor.name, q.tensor.dims)
            for q in self.formula.equations
            if q.tensor.name in fused
        }
        history = self._empty(f"{rec.name}_all", tuple(n for _, n in rec.indices)) if keep else None
        state = self._loop(rec, [q for q in self.formula.equations if q.tensor.name in fused], outs, history)
        self.low = replace(self.low, states={rec.name: state})
        if history is not None:
            whole = Operand(history, tuple(n for _, n in rec.indices), Kind.DATA)
            self.low = replace(self.low, tensors={**self.low.tensors, rec.name: whole})
            rest = [q if q.tensor.name in last else replace(q, expr=_as_loads(q.expr)) for q in rest]
        for q in rest:
            outs[q.tensor.name] = self._equation(q)
        return [outs[q.tensor.name] for q in self.formula.equations]

    def _empty(self, hint: str, dims: Sequence[Expr]) -> Code:
        shape = [self.low.number(d).text for d in dims]
        like = f"device={self.low.device}"
        return self.block.assign(hint, call("torch.empty", *shape, "dtype=p.accumulator", like))

    def _loop(
        self, rec: Recurrence, fused: Sequence[FormulaEquation], outs: Mapping[str, Code], history: Code | None
    ) -> Operand:
        """Returns the state after the last step."""
        (time, steps), *axes = rec.indices
        frame: Frame = tuple(v for v, _ in axes)
        dims = tuple(n for _, n in axes)
        low = self.low.inside(**dict(rec.indices))
        rule = FormulaEquation(FormulaTensor(rec.name, dims), frame, rec.init)
        state = self.block.assign(rec.name, self._full(rule, rec.init, low).code)
        counter = self.names.fresh(time)
        self.block.add(f"for {counter} in range({low.number(steps).text}):")
        inner = Block(self.names, self.block.lines, self.block.indent + "    ")
        operand = Operand(state, dims, Kind.DATA)
        low = replace(low, block=inner, loops={time: counter}, states={rec.name: operand}, known=dict(low.known))
        outer, self.block = self.block, inner
        inner.add(f"{state.text} = {self._value(replace(rule, expr=rec.step), low).code.text}")
        low = replace(low, known=dict(self.low.known))
        if history is not None:
            inner.add(f"{history.text}[{counter}] = {state.text}")
        for q in fused:
            step = replace(q, tensor=replace(q.tensor, dims=q.tensor.dims[1:]), indices=q.indices[1:])
            inner.add(f"{outs[q.tensor.name].text}[{counter}] = {self._value(step, low).code.text}")
        self.block = outer
        return operand


def _certain(e: Expr) -> Expr:
    """The parts of `e` that are computed at all sizes: not the branches of a condition on sizes alone."""
    if isinstance(e, Select) and not any(isinstance(n, Var | Load | State) for n in walk(e.cond)):
        return _certain(e.cond)
    return rebuild(e, _certain)


def _reads_last_step(q: FormulaEquation, rec: Recurrence) -> bool:
    last = minus(rec.indices[0][1], integer(1))
    states = [e for e in walk(q.expr) if isinstance(e, State)]
    return bool(states) and all(same(e.indices[0], last) for e in states)


def _reads_own_step(q: FormulaEquation, rec: Recurrence) -> bool:
    states = [e for e in walk(q.expr) if isinstance(e, State)]
    same_axis = q.indices[:1] == (rec.indices[0][0],) and q.tensor.dims[:1] == (rec.indices[0][1],)
    return bool(states) and same_axis and all(e.indices[0] == Var(rec.indices[0][0]) for e in states)


def _as_loads(e: Expr) -> Expr:
    e = rebuild(e, _as_loads)
    return Load(e.name, e.indices) if isinstance(e, State) else e
