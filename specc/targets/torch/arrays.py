"""Formulas over indices, printed as array arithmetic: each value knows which index runs along each of its axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from specc.ops import (
    Apply,
    Bin,
    Call,
    Cmp,
    Expr,
    Load,
    Logic,
    Named,
    Neg,
    Num,
    Pi,
    Reduce,
    Select,
    Size,
    Softmax,
    Sort,
    State,
    Var,
    free_vars,
)  # fmt: skip
from specc.targets.torch.code import Code, Level, binary, call, compare, negative, number, power, ternary
from specc.targets.torch.loads import Item, into_frame, read
from specc.targets.torch.reductions import reduce, softmax
from specc.targets.torch.scalars import Helpers
from specc.targets.torch.scope import Block, Frame, Kind, Operand, Value, aligned, joined

Key = tuple[str, Expr, tuple[tuple[str, Expr], ...]]


@dataclass
class Lowerer:
    """Prints expressions into `block`. Copies made by `inside` share block, helpers and known values."""

    block: Block
    helpers: Helpers
    tensors: Mapping[str, Operand]
    extents: dict[str, Expr] = field(default_factory=dict)
    loops: Mapping[str, str] = field(default_factory=dict)
    """Index variables that are Python integers here, and their names."""
    params: Mapping[str, Value] = field(default_factory=dict)
    """Parameters of a scalar function."""
    states: Mapping[str, Operand] = field(default_factory=dict)
    """Recurrences by name: the tensor that stands for a step's state."""
    sizes: Mapping[str, str] = field(default_factory=dict)
    rounds: Mapping[str, str] = field(default_factory=dict)
    """Rounding of a let, or of `softmax`, to a role."""
    device: str = "device"
    dtype: str = "p.accumulator"
    guarded: bool = False
    in_table: bool = False
    known: dict[Key, Value] = field(default_factory=dict)

    def inside(self, /, **extents: Expr) -> Lowerer:
        """The same place with more index variables."""
        return replace(self, extents={**self.extents, **extents})

    def guard(self) -> Lowerer:
        """The same place, where an index may leave its dimension because its value is not used there."""
        return replace(self, guarded=True)

    def number(self, e: Expr) -> Code:
        """An expression that is a Python number here."""
        return self.lower(e, ()).code

    def to_accumulator(self, code: Code) -> Code:
        return self.block.fit(code, around=24)[0].method("to", self.dtype)

    def lower(self, e: Expr, frame: Frame) -> Value:
        """`e` as Python, its axes aligned with the end of `frame`."""
        match e:
            case Num(value):
                return Value(number(value), Kind.CONST)
            case Pi():
                return Value(Code("math.pi"), Kind.CONST)
            case Size(name):
                return Value(Code(self.sizes[name]), Kind.CONST)
            case Var(name):
                return self._variable(name, frame)
            case Load(name, indices):
                return read(self.tensors[name], indices, frame, self)
            case State(name, indices):
                return read(self.states[name], indices[1:], frame, self)
            case Neg(arg):
                inner = self.lower(arg, frame)
                return replace(inner, code=negative(inner.code))
            case Bin():
                return self._binary(e, frame)
            case Cmp(op, left, right):
                return self._compare(op, self.lower(left, frame), self.lower(right, frame))
            case Logic(op, args):
                lazy = [self, *[self.guard()] * (len(args) - 1)]
                return self._logic(op, [low.lower(a, frame) for low, a in zip(lazy, args, strict=True)])
            case Call() | Apply():
                return self._function(e, frame)
            case Reduce():
                return reduce(e, frame, self)
            case Softmax():
                return softmax(e, frame, self)[0]
            case Select():
                return self._select(e, frame)
            case Named():
                return self._named(e, frame)
        raise TypeError(f"{type(e).__name__} has no value in a closed formula")

    def _variable(self, name: str, frame: Frame) -> Value:
        if name in self.params:
            return self.params[name]
        if name in self.loops:
            return Value(Code(self.loops[name]), Kind.CONST)
        extent = self.number(self.extents[name])
        key = self.key("arange", Var(name))
        if key not in self.known:
            code = self.block.assign(name, call("torch.arange", extent, f"device={self.device}"))
            self.known[key] = Value(code, Kind.INDEX, (name,))
        code, axes = into_frame(self.known[key].code, [Item(":", (name,))], frame)
        return Value(code, Kind.INDEX, axes)

    def key(self, what: str, e: Expr) -> Key:
        """What makes a value the same value: the expression and the ranges of its variables."""
        return what, e, tuple((v, self.extents[v]) for v in free_vars(e) if v in self.extents)

    def remember(self, what: str, e: Expr, hint: str, value: Value) -> Value:
        """`value` under a name, which later reads of `e` use."""
        named = replace(value, code=self.block.assign(hint, value.code))
        self.known[self.key(what, e)] = named
        return named

    def recall(self, what: str, e: Expr, frame: Frame) -> Value | None:
        found = self.known.get(self.key(what, e))
        return found if found and aligned(found.axes, frame) else None

    def _binary(self, e: Bin, frame: Frame) -> Value:
        left, right = self.lower(e.left, frame), self.lower(e.right, frame)
        if e.op == "·" and left.code.text == "1" and e.sort is e.right.sort:
            return right
        if e.op in ("·", "/") and right.code.text == "1" and e.sort is e.left.sort:
            return left
        (left, right), kind = self.unify([(e.left, left), (e.right, right)], e.sort)
        code = power(left.code, right.code) if e.op == "^" else self._infix(e.op, left.code, right.code)
        return Value(code, kind, joined((left, right)))

    def _infix(self, op: str, left: Code, right: Code) -> Code:
        return binary(op, *self.block.fit(left, right))

    def unify(self, pairs: Sequence[tuple[Expr, Value]], sort: Sort) -> tuple[list[Value], Kind]:
        """Operands of one operation in one type, and the kind of its result."""
        values = [v for _, v in pairs]
        kinds = [v.kind for v in values]
        if Kind.DATA in kinds:
            return [self._as_data(e, v) for e, v in pairs], Kind.DATA
        if all(k is Kind.CONST for k in kinds):
            return values, Kind.CONST
        if sort is not Sort.REAL:
            return values, Kind.INDEX if sort is Sort.INDEX else Kind.BOOL
        if Kind.EXACT not in kinds:
            values = [self.real(v) for v in values]
        return values, Kind.EXACT

    def real(self, v: Value) -> Value:
        """An integer tensor as float64; anything else as it is."""
        return Value(v.code.method("double"), Kind.EXACT, v.axes) if v.kind is Kind.INDEX else v

    def exact(self, v: Value) -> Value:
        """A Python number as a float64 tensor."""
        code = call("torch.tensor", v.code, "dtype=torch.float64", f"device={self.device}")
        return Value(code, Kind.EXACT)

    def _as_data(self, e: Expr, v: Value) -> Value:
        """A float64 value that meets data is rounded once, under a name."""
        if v.kind is not Kind.EXACT:
            return v
        known = self.known.get(self.key("data", e))
        if known and known.axes == v.axes:
            return known
        hint = e.fn if isinstance(e, Call) else e.name if isinstance(e, Named) else "factor"
        return self.remember("data", e, hint, Value(self.to_accumulator(v.code), Kind.DATA, v.axes))

    def as_accumulator(self, e: Expr, v: Value) -> Value:
        """`v` as a tensor in the accumulator's type."""
        match v.kind:
            case Kind.CONST:
                code = call("torch.tensor", v.code, f"dtype={self.dtype}", f"device={self.device}")
                return Value(code, Kind.DATA)
            case Kind.INDEX | Kind.BOOL:
                return Value(self.to_accumulator(v.code), Kind.DATA, v.axes)
        return self._as_data(e, v)

    def condition(self, e: Expr, frame: Frame) -> Value:
        """A condition as a named tensor of truth values."""
        known = self.recall("where", e, frame)
        if known is not None:
            return known
        value = self.lower(e, frame)
        if not value.is_array:
            return Value(call("torch.tensor", value.code, f"device={self.device}"), Kind.BOOL)
        return self.remember("where", e, "visible", value)

    def _compare(self, op: str, left: Value, right: Value) -> Value:
        kind = Kind.BOOL if left.is_array or right.is_array else Kind.CONST
        return Value(compare(op, left.code, right.code), kind, joined((left, right)))

    def _logic(self, op: str, args: Sequence[Value]) -> Value:
        kind = Kind.BOOL if any(a.is_array for a in args) else Kind.CONST
        if not args:
            return Value(Code(op.capitalize()), Kind.CONST)
        if op == "not":
            text = f"~{args[0].code.at(Level.UNARY)}" if args[0].is_array else f"not {args[0].code.at(Level.NOT)}"
            return Value(Code(text, Level.UNARY if args[0].is_array else Level.NOT), kind, args[0].axes)
        symbol = op if kind is Kind.CONST else {"and": "&", "or": "|"}[op]
        code = args[0].code
        for a in args[1:]:
            code = binary(symbol, *self.block.fit(code, a.code))
        return Value(code, kind, joined(args))

    def _function(self, e: Call | Apply, frame: Frame) -> Value:
        table = None if self.in_table or self.params else self.helpers.table(e, frame, self)
        if table is not None:
            return table
        lowered = [(a, self.lower(a, frame)) for a in e.args]
        if isinstance(e, Apply):
            return self._apply(e, lowered)
        values, kind = self.unify(lowered, e.sort)
        codes = self.block.fit(*(v.code for v in values), around=16)
        fitted = [replace(v, code=c) for v, c in zip(values, codes, strict=True)]
        return Value(elementary(e.fn, fitted), kind, joined(values))

    def _apply(self, e: Apply, lowered: Sequence[tuple[Expr, Value]]) -> Value:
        """A call of a scalar function; what its integer parameters take stays integer."""
        reals = [pair for pair, p in zip(lowered, e.fn.params, strict=True) if p.sort is Sort.REAL]
        unified = iter(self.unify(reals, Sort.REAL)[0])
        values = [v if p.sort is Sort.INDEX else next(unified) for (_, v), p in zip(lowered, e.fn.params, strict=True)]
        kinds = [v.kind for v in values]
        kind = Kind.DATA if Kind.DATA in kinds else Kind.EXACT if any(v.is_array for v in values) else Kind.CONST
        code = call(self.helpers.scalar(e.fn, values), *self.block.fit(*(v.code for v in values)))
        return Value(code, kind, joined(values))

    def _select(self, e: Select, frame: Frame) -> Value:
        cond = self.lower(e.cond, frame)
        low = self.guard()
        sides = [(s, low.lower(s, frame)) for s in (e.then, e.other)]
        values, kind = self.unify(sides, e.sort)
        if not cond.is_array:
            return Value(ternary(cond.code, values[0].code, values[1].code), kind, joined(values))
        if kind is Kind.CONST and e.sort is Sort.REAL:
            kind, values[0] = Kind.EXACT, self.exact(values[0])
        elif kind is Kind.CONST:
            kind = Kind.INDEX
            values[0] = Value(call("torch.tensor", values[0].code, f"device={self.device}"), kind)
        code = call("torch.where", *self.block.fit(*(v.code for v in (cond, *values))))
        return Value(code, kind, joined((cond, *values)))

    def _named(self, e: Named, frame: Frame) -> Value:
        role = self.rounds.get(e.name)
        if e.sort is Sort.INDEX or (role is None and isinstance(e.expr, Load | Num | Named)):
            return self.lower(e.expr, frame)
        known = self.recall("let", e, frame)
        if known is not None:
            return known
        value = self.lower(e.expr, frame)
        if value.kind is Kind.CONST:
            return value if role is None else replace(value, code=call("rounded", value.code, f"p.{role}"))
        return self.remember("let", e, e.name, value if role is None else self.rounded(value, role))

    def rounded(self, value: Value, role: str) -> Value:
        """`value` after a store in the type of `role`."""
        back = "torch.float64" if value.kind is Kind.EXACT else self.dtype
        return replace(value, code=value.code.method("to", f"p.{role}").method("to", back))


def elementary(fn: str, values: Sequence[Value]) -> Code:
    """A call of `torch`, or of Python for numbers."""
    if all(v.kind is Kind.CONST for v in values):
        name = fn if fn in ("abs", "max", "min") else f"math.{fn}"
        return call(name, *(v.code for v in values))
    if fn in ("max", "min") and any(v.kind is Kind.CONST for v in values):
        array, bound = sorted(values, key=lambda v: not v.is_array)
        limit = "min" if fn == "max" else "max"
        return call("torch.clamp", array.code, f"{limit}={bound.code.text}")
    return call({"max": "torch.maximum", "min": "torch.minimum"}.get(fn, f"torch.{fn}"), *(v.code for v in values))


def size_names(tensors: Sequence[tuple[str, Sequence[Expr]]]) -> dict[str, str]:
    """Where each run-time size can be read: `T` from `x.shape[0]`."""
    found: dict[str, str] = {}
    for name, dims in tensors:
        for axis, dim in enumerate(dims):
            if isinstance(dim, Size):
                found.setdefault(dim.name, f"{name}.shape[{axis}]")
    return found
