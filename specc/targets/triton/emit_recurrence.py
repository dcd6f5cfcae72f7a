"""The recurrence schedule: a head's state in registers, chunks of steps as products of matrices."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specc.kernels import Access, Axis, Kernel, Reading, Recurrent
from specc.lower.access import depends_on
from specc.ops import Expr, Num, Sort, Var, free_vars, substitute
from specc.targets.triton.host import product_text
from specc.targets.triton.names import local_names
from specc.targets.triton.rows import unravel
from specc.targets.triton.scope import Index, Scope, main_operand
from specc.targets.triton.slots import Launch, Slots, map_configs, parameters
from specc.targets.triton.tiles import Config, Configs, TileTable, load_tiles, next_power_of_two

SMALLEST = 16
"""Of any side of a tile: what a tensor core takes."""
WIDEST = 32
"""Keys whose part of the state is one tile."""
TILES = ("CHUNK", "BLOCK_V", "CUT_K")
EXACT_DOT = '''@triton.jit
def exact_dot(a, b, total, CUT_K: tl.constexpr):
    """total + a·b to the accuracy of float32.

    A factor in float32 is cut into three of 8 bits each, which hold its 24, for tensor cores; products below 2**-23 are
    left out. Two of them are cut for sums of CUT_K or more, and multiplied as they are for shorter ones.
    """
    if a.dtype == b.dtype and (a.dtype != tl.float32 or a.shape[1] < CUT_K):
        return tl.dot(a, b, total, input_precision="ieee")
    a1 = a.to(tl.bfloat16)
    b1 = b.to(tl.bfloat16)
    total = tl.dot(a1, b1, total)
    small = tl.zeros(total.shape, tl.float32)
    if a.dtype != tl.bfloat16:
        a_rest = a.to(tl.float32) - a1.to(tl.float32)
        a2 = a_rest.to(tl.bfloat16)
        small = tl.dot(a2, b1, small)
        small = tl.dot((a_rest - a2.to(tl.float32)).to(tl.bfloat16), b1, small)
    if b.dtype != tl.bfloat16:
        b_rest = b.to(tl.float32) - b1.to(tl.float32)
        b2 = b_rest.to(tl.bfloat16)
        small = tl.dot(a1, b2, small)
        small = tl.dot(a1, (b_rest - b2.to(tl.float32)).to(tl.bfloat16), small)
        if a.dtype != tl.bfloat16:
            small = tl.dot(a2, b2, small)
    return total + small
'''
SUM_OF_STEPS = '''@triton.jit
def sum_of_steps(a, b, total, CUT_K: tl.constexpr):
    """total + a·b, where b[s, t] is 0 for t < s. A column of `a` that is NaN or infinite reaches those from it on."""
    lost = tl.cumsum(0.0 * a, 1)
    return exact_dot(tl.where(lost == 0.0, a, 0.0), b, total + lost, CUT_K)
'''


@dataclass(frozen=True)
class ReadingText:
    """A reading as its template prints it; `loads` make its query for one piece of the keys, and `meets` and
    `meets_erase` are the products of what is written and erased with it."""

    acc: str
    meets: str
    meets_erase: str
    query: str
    loads: list[str]
    epilogue: list[str]


@dataclass(frozen=True)
class PieceText:
    """A run of keys whose part of the state is a tile of its own."""

    index: list[str]
    keys: int
    state: str
    last: list[str]


def recurrence_slots(kernel: Kernel, table: TileTable) -> Slots:
    """Raises SpecError where the table has no tiles for it."""
    r = kernel.schedule
    assert isinstance(r, Recurrent)
    keys, values = _length(r.key), _length(r.value)
    configs = _tiles(table.resolve("recurrence", {"K": keys, "V": values}), values)
    printed: dict[str, object] = dict(_Chunks(kernel, r, keys, values).text())
    heads = product_text(tuple(a.extent for a in r.heads))
    grid = (heads, f'triton.cdiv({values}, config.tiles["BLOCK_V"])')
    given = parameters(kernel, printed, [o.name for o in kernel.operands])
    launch = Launch(f"{kernel.name}_kernel", given, TILES, grid)
    exprs: tuple[Expr, ...] = (r.first, r.decay, r.rate or r.decay, r.probe, r.erase, r.added, r.write)
    exprs += tuple(e for x in r.readings for e in (x.query, x.store.value))
    steps = product_text((r.time.extent,))
    return Slots(
        "triton/recurrence.py.j2", printed, configs, (launch,), steps, main_operand(kernel), exprs,
        helpers=(EXACT_DOT, SUM_OF_STEPS),
    )  # fmt: skip


def chunk_sizes(kernel: Kernel, dtype: str, table: TileTable | None = None) -> tuple[int, ...]:
    """Steps of a chunk on any GPU, by the table (the shipped one, if None), when storage is `dtype`."""
    r = kernel.schedule
    assert isinstance(r, Recurrent)
    configs = (table or load_tiles()).resolve("recurrence", {"K": _length(r.key), "V": _length(r.value)})
    width = 4 if dtype == "float32" else 2
    found = [c for _, widths in configs for w, some in widths if w == width for c in some]
    return tuple(sorted({c.tile("CHUNK") for c in found}))


def _length(axis: Axis) -> int:
    assert isinstance(axis.extent, Num)
    return int(axis.extent.value)


def _tiles(configs: Configs, values: int) -> Configs:
    """No block wider than the values need."""
    widest = max(SMALLEST, next_power_of_two(values))

    def tiles(c: Config) -> tuple[tuple[str, int], ...]:
        return tuple((n, min(size, widest) if n == "BLOCK_V" else size) for n, size in c.tiles)

    return map_configs(configs, tiles)


class _Chunks:
    """The printed parts of a recurrence."""

    def __init__(self, kernel: Kernel, r: Recurrent, keys: int, values: int) -> None:
        self.kernel, self.r, self.keys, self.values = kernel, r, keys, values
        self.names = local_names(kernel)
        self.names.taken |= {x.accumulator for x in r.readings}
        self.piece = min(WIDEST, max(SMALLEST, next_power_of_two(keys)))
        t, a, b = r.time.var, r.value.var, r.key.var
        heads = {h.var: Index(h.var) for h in r.heads}
        self.masked = keys % self.piece != 0
        inside = f"{b}_in" if self.masked else None
        column, value = Index(f"{t}[:, None]", f"{t}_in[:, None]"), Index(a, f"{a}_in")
        self.flat = self._scope({**heads, t: Index(t, f"{t}_in")})
        self.vectors = self._scope({**heads, t: column, b: Index(f"{b}[None, :]", inside and f"{inside}[None, :]")})
        self.out = self._scope({**heads, t: Index(f"{t}[None, :]", f"{t}_in[None, :]"), a: value})
        self.whole = self._scope({**heads, a: value, b: Index(f"{b}[None, :]", inside and f"{inside}[None, :]")})
        self.steps = {x.name for x in r.loads if t in depends_on(x) and not {a, b} & set(depends_on(x))}
        self.before: list[str] = []
        self.vector_names: dict[Expr, str] = {}

    def _scope(self, indices: dict[str, Index]) -> Scope:
        inner = (self.r.time.var, self.r.value.var, self.r.key.var)
        return Scope(self.kernel, self.names, indices, inner)

    def text(self) -> dict[str, object]:
        """Values of the template."""
        r, t = self.r, self.r.time.var
        place, steps = self._head(), product_text((r.time.extent,))
        self._place_reads()
        first = self._first()
        self.before += self.out.pointers([x.store for x in r.readings])
        self.before += self.whole.pointers([r.last] if r.last is not None else [])
        coefficients = self._coefficients()
        named = {"write": r.write, **({} if r.rate is None else {"probe": r.probe, "erase": r.erase})}
        vectors = {n: self._vector(n, e) for n, e in named.items()}
        return {
            "head": [*place, *self.before], "first": first, "pieces": self._pieces(), "steps": steps,
            "index": [f"{t} = start + step", f"{t}_in = {t} < {steps}"], "coefficients": coefficients,
            "state_loads": self._tiles(named.values()), "taken": r.rate is not None, "shared": r.erase == r.write,
            "readings": [self._reading(x, tuple(named.values())) for x in r.readings], "last": r.last is not None,
            "probe": "", "erase": "", **vectors,
        }  # fmt: skip

    def _head(self) -> list[str]:
        a = self.r.value.var
        lines = unravel("tl.program_id(0)", self.r.heads) if self.r.heads else []
        inside = f"{a} < {self.values} if {self.values} % BLOCK_V != 0 else tl.full((BLOCK_V, 1), True, tl.int1)"
        return [*lines, f"{a} = (tl.program_id(1) * BLOCK_V + tl.arange(0, BLOCK_V))[:, None]", f"{a}_in = {inside}"]

    def _pieces(self) -> list[PieceText]:
        found: list[PieceText] = []
        b = self.r.key.var
        for start in range(0, self.keys, self.piece):
            lines = [f"{b} = {f'{start} + ' if start else ''}tl.arange(0, {self.piece})"]
            lines += [f"{b}_in = {b} < {self.keys}"] if self.masked else []
            state = self.names.fresh(f"state_{len(found)}")
            last = [] if self.r.last is None else self.whole.store(self.r.last, state)
            found.append(PieceText(lines, self.piece, state, last))
        return found

    def _first(self) -> list[str]:
        self.before += self.whole.pointers(self.r.first_loads)
        lines = [line for a in self.r.first_loads for line in self.whole.load(a)]
        return [*lines, *self.whole.block([("state", self.r.first)])]

    def _place_reads(self) -> None:
        """Row pointers of all reads; what is the same at every step is read at once."""
        for access in self.r.loads:
            scope = self._scope_of(access)
            self.before += scope.pointers([access])
            if not {self.r.time.var, self.r.key.var} & set(depends_on(access)):
                self.before += scope.load(access)
            for other in (self.flat, self.vectors, self.out):
                other.note(access)

    def _scope_of(self, access: Access) -> Scope:
        on = set(depends_on(access))
        return self.vectors if self.r.key.var in on else self.out if self.r.value.var in on else self.flat

    def _reads(self, exprs: Iterable[Expr]) -> list[Access]:
        """Reads of each chunk that `exprs` need, but for those of vectors."""
        names = {n for e in exprs for n in free_vars(e)}
        moving = [x for x in self.r.loads if x.name in names and self.r.time.var in depends_on(x)]
        return [x for x in moving if self.r.key.var not in depends_on(x)]

    def _coefficients(self) -> list[str]:
        """Decay, rate and what is added, and all that is read of each chunk but vectors."""
        r, t = self.r, self.r.time.var
        results = [e for y in r.readings for e in (y.query, y.store.value)]
        exprs = (r.decay, r.rate, r.added, r.write, r.probe, r.erase, *results)
        reads = self._reads(e for e in exprs if e is not None)
        lines = [line for x in reads for line in self._scope_of(x).load(x)]
        lines.append(f"decay = tl.where({t}_in, {self.flat.text(r.decay)}, 1.0)")
        if r.rate is not None:
            lines.append(f"rate = tl.where({t}_in, {self.flat.text(r.rate)}, 0.0)")
        lines += self.out.block([("added", self._wide(r.added, "[None, :]"))])
        lines.append(f"added = tl.where({t}_in[None, :] & {r.value.var}_in, added, 0.0)")
        return lines

    def _wide(self, e: Expr, view: str) -> Expr:
        """`e` in a tile of steps and something else, where what is one number a step is seen as `view`."""
        return substitute(e, {n: Var(f"{n}{view}", Sort.REAL) for n in self.steps})

    def _vector(self, name: str, e: Expr) -> str:
        """The name of a tile of vectors: a read as it is, or something computed."""
        if e not in self.vector_names:
            self.vector_names[e] = e.name if isinstance(e, Var) else self.names.fresh(name)
        return self.vector_names[e]

    def _tiles(self, exprs: Iterable[Expr], known: Iterable[Expr] = ()) -> list[str]:
        """Reads and makes the tiles of vectors `exprs` of a piece, but for `known` ones."""
        wanted, done = list(dict.fromkeys(exprs)), set(known)
        new = [e for e in wanted if e not in done]
        read = {n for e in done for n in free_vars(e)}
        names = {n for e in new for n in free_vars(e)} - read
        lines: list[str] = []
        for access in self.r.loads:
            if access.name in names and self.r.key.var in depends_on(access):
                lines += self.vectors.load(access, upcast=not self._kept(access))
        masks = [i.mask for i in (self.vectors.indices[v] for v in (self.r.time.var, self.r.key.var)) if i.mask]
        for e in (x for x in new if not isinstance(x, Var)):
            name = self.vector_names[e]
            lines += self.vectors.block([(name, self._wide(e, "[:, None]"))])
            lines.append(f"{name} = tl.where({' & '.join(masks)}, {name}, 0.0)")
        return lines

    def _kept(self, access: Access) -> bool:
        """Whether a vector is read as it is, in its storage type, and nothing is computed from it."""
        vectors = [self.r.probe, self.r.erase, self.r.write, *(x.query for x in self.r.readings)]
        return all(access.name not in free_vars(e) for e in vectors if not isinstance(e, Var))

    def _reading(self, reading: Reading, known: tuple[Expr, ...]) -> ReadingText:
        query = self._vector("query", reading.query)
        result = self.names.fresh(reading.store.operand)
        lines = self.out.block([(result, self._wide(reading.store.value, "[None, :]"))])
        loads = self._tiles([reading.query], known)
        meets, meets_erase = self.names.fresh("meets_query"), self.names.fresh("erase_meets_query")
        epilogue = [*lines, *self.out.store(reading.store, result)]
        return ReadingText(reading.accumulator, meets, meets_erase, query, loads, epilogue)
