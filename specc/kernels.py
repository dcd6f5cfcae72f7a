"""Lowered kernels: a schedule with its slots filled, ready for any target.

Slots hold `ops.Expr` trees in which every element read is a `Var` of sort REAL (or INDEX for an integer operand) that
names an `Access`, and every reduction is a `Var` that names a stage or accumulator. Index variables stay `Var`s of
sort INDEX. A target prints these trees; it decides nothing about mathematics.
"""

from __future__ import annotations

from dataclasses import dataclass

from specc.ir import Role
from specc.ops import Expr, Formula, Sort


@dataclass(frozen=True)
class Axis:
    """A loop of the formula: its index variable and its extent, a number or a run-time size."""

    var: str
    extent: Expr


@dataclass(frozen=True)
class Operand:
    """A tensor parameter. Every axis but the last has a run-time stride; the last is contiguous.

    `axes` names the axes for stride arguments. `wide`: an offset may pass 2**31 - 1 elements in the shape domain.
    """

    name: str
    dims: tuple[Expr, ...]
    role: Role
    axes: tuple[str, ...]
    sort: Sort = Sort.REAL
    output: bool = False
    wide: bool = False

    def stored(self, dtype: str) -> str:
        """Its storage type where that of the other roles is `dtype`: an accumulator's is never shorter than float32."""
        return "float32" if self.role is Role.ACCUMULATOR and dtype != "float64" else dtype


@dataclass(frozen=True)
class Table:
    """A float64 operand that the launcher derives from the formula: `expr` over `var` in `0 <= var < extent`."""

    name: str
    var: str
    extent: int
    expr: Expr


@dataclass(frozen=True)
class Access:
    """One element read, named `name`: `operand[indices]`, or a table's. `guard`: only read where it holds (the reader
    takes care of the value elsewhere; where the index comes from data, a failed guard reads as NaN)."""

    name: str
    operand: str
    indices: tuple[Expr, ...]
    guard: Expr | None = None
    data_index: bool = False


@dataclass(frozen=True)
class Store:
    """`operand[indices] = value`, rounded to the operand's storage type."""

    operand: str
    indices: tuple[Expr, ...]
    value: Expr


@dataclass(frozen=True)
class Strip:
    """A run of equally long pieces of the inner axis, computed together: the inner variable runs over `length`."""

    length: int
    loads: tuple[Access, ...]
    stores: tuple[Store, ...]


@dataclass(frozen=True)
class Pointwise:
    """Each row (a point of `rows`) and each inner index alone. `row_loads` depend on the row only."""

    rows: tuple[Axis, ...]
    inner: str
    row_loads: tuple[Access, ...]
    strips: tuple[Strip, ...]


@dataclass(frozen=True)
class Stage:
    """`name = finish(op over the row of map)`, where `finish` reads the raw result as `Var(name + "_raw")`.
    Elements at which `where` fails do not take part."""

    name: str
    op: str
    map: Expr
    finish: Expr
    where: Expr | None = None

    @property
    def raw(self) -> str:
        return f"{self.name}_raw"


@dataclass(frozen=True)
class RowReduction:
    """A row (a point of `rows`) stays on chip while `stages` reduce it one after another; then it is stored.
    `loads` are read once a row, `vectors` (independent of the row) may be shared by rows."""

    rows: tuple[Axis, ...]
    inner: Axis
    row_loads: tuple[Access, ...]
    loads: tuple[Access, ...]
    vectors: tuple[Access, ...]
    stages: tuple[Stage, ...]
    stores: tuple[Store, ...]


@dataclass(frozen=True)
class Contraction:
    """`out[rows, n] = epilogue(acc)`, `acc = Σ_k a·b`; `a` reads rows and k, `b` reads n and k."""

    rows: tuple[Axis, ...]
    columns: Axis
    inner: Axis
    a_loads: tuple[Access, ...]
    b_loads: tuple[Access, ...]
    a: Expr
    b: Expr
    accumulator: str
    loads: tuple[Access, ...]
    """Read by the epilogue at (rows, n)."""
    store: Store


@dataclass(frozen=True)
class HeadMap:
    """Query heads that read one KV head: query head = `outer·kv_head + member·step`, 0 <= member < `group`."""

    heads: int
    kv_heads: int
    group: int
    outer: int
    step: int


@dataclass(frozen=True)
class Attention:
    """`out = epilogue(Σ_l softmax_l(score(dot) | visible)·v)`, `dot = Σ_e q·k`.

    Prefill: keys are shared by all rows. Decode (`decode`): each row has its own keys. `low <= l < high` contains
    every visible position of a row (None: no bound there); both are over the row's `row_loads`.
    """

    decode: bool
    row: Axis
    head: Axis
    keys: Axis
    inner: Axis
    columns: Axis
    q: Access
    k: Access
    v: Access
    row_loads: tuple[Access, ...]
    dot: str
    score: Expr
    visible: Expr | None
    low: Expr | None
    high: Expr | None
    head_map: HeadMap
    kv_head: str
    """Index variable that stands for the KV head in the accesses of k and v."""
    accumulator: str
    store: Store
    round_probabilities: bool = False
    probability_role: Role = Role.CACHE
    """Whose storage type softmax weights are rounded to, where they are."""


@dataclass(frozen=True)
class Reading:
    """`store`, whose value reads `accumulator` = Σ over keys of state · `query`, at each step."""

    query: Expr
    accumulator: str
    store: Store


@dataclass(frozen=True)
class Recurrent:
    """A matrix state of values and keys for each point of `heads`, carried through `time`:

        state = decay · (state - rate · (Σ over keys of state · probe) · erase) + added · write

    `first` is the state before time 0, read through `first_loads`; `last` stores the one after the last step. `decay`
    and `rate` are over time and heads, `probe`, `erase`, `write` and queries over keys as well, `added` over values as
    well. `rate` is None where nothing is taken from the state.
    """

    time: Axis
    heads: tuple[Axis, ...]
    value: Axis
    key: Axis
    state: str
    first_loads: tuple[Access, ...]
    first: Expr
    loads: tuple[Access, ...]
    decay: Expr
    rate: Expr | None
    probe: Expr
    erase: Expr
    added: Expr
    write: Expr
    readings: tuple[Reading, ...]
    last: Store | None


Schedule = Pointwise | RowReduction | Contraction | Attention | Recurrent


@dataclass(frozen=True)
class Kernel:
    """One kernel, in terms that no target adds mathematics to."""

    name: str
    op: str
    phase: str
    keys: tuple[str, ...]
    formula: Formula
    """The definition, for the header and for the oracle."""
    lowered: Formula
    """What is computed: `computed as` forms, roundings, tables as inputs. For bounds."""
    schedule: Schedule
    operands: tuple[Operand, ...]
    """Inputs in the formula's order, then results."""
    tables: tuple[Table, ...]
    sizes: tuple[str, ...]
    """Run-time sizes, in order of first occurrence."""
    reason: str
    """Why this schedule."""

    @property
    def schedule_name(self) -> str:
        match self.schedule:
            case Pointwise(row_loads=loads, strips=strips):
                indirect = any(a.data_index for s in strips for a in (*s.loads, *loads))
                return "gather" if indirect else "pointwise"
            case RowReduction():
                return "row_reduction"
            case Contraction():
                return "contraction"
            case Attention(decode=decode):
                return "attention_decode" if decode else "attention_prefill"
            case Recurrent():
                return "recurrence"

    def operand(self, name: str) -> Operand:
        """Raises KeyError."""
        for o in self.operands:
            if o.name == name:
                return o
        raise KeyError(name)
