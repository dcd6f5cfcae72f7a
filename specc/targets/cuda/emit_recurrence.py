"""The recurrence schedule: a head's state in shared memory, chunks of steps as products of matrices in float32."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from specc.kernels import Access, Kernel, Reading, Recurrent, Store
from specc.ops import Expr, Var, free_vars
from specc.targets.cuda.emit_contraction import by_storage, extent
from specc.targets.cuda.emit_pointwise import body, mentions
from specc.targets.cuda.names import local_names
from specc.targets.cuda.scope import LONGEST_VECTOR, Inner, Scope
from specc.targets.cuda.slots import Function, Instance, Slots, extent_text, product_text, unravel
from specc.targets.cuda.tiles import Tiles, on_host, tiles_of
from specc.targets.tile_table import WIDTHS, Config, TileTable


@dataclass(frozen=True)
class PartText:
    """Something that is read and worked out: statements before a loop over a vector and inside it, and (place, value)
    of what comes out."""

    before: list[str]
    elements: list[str]
    results: list[tuple[str, str]]


@dataclass(frozen=True)
class StoreText:
    """A store in vectors of what lies in shared memory; `query` is the tile that a reading multiplies."""

    query: str
    acc: str
    before: list[str]
    elements: list[str]
    stores: list[str]


def recurrence_slots(kernel: Kernel, tiles: Tiles) -> Slots:
    return _Printer(kernel, tiles).slots()


def chunk_sizes(kernel: Kernel, table: TileTable | None = None) -> tuple[int, ...]:
    """Steps of a chunk, on the CPU, by the table (the shipped one, if None)."""
    r = kernel.schedule
    assert isinstance(r, Recurrent)
    found = tiles_of(on_host(table), table).of("recurrence", {"K": extent(r.key), "V": extent(r.value)})
    return tuple(sorted({c.tile("CHUNK") for some in found.values() for c in some}))


class _Printer:
    def __init__(self, kernel: Kernel, tiles: Tiles) -> None:
        assert isinstance(kernel.schedule, Recurrent)
        self.kernel, self.table, self.r = kernel, tiles, kernel.schedule
        r = self.r
        self.names = local_names(kernel)
        self.names.taken |= {x.accumulator for x in r.readings} | {r.state}
        self.heads = [h.var for h in r.heads]
        self.keys, self.values = extent(r.key), extent(r.value)
        self.key_first = self.names.fresh(f"{r.key.var}_first")
        self.value_first = self.names.fresh(f"{r.value.var}_first")
        self.by_name = {a.name: a for a in (*r.loads, *r.first_loads)}
        self.tiles: dict[Expr, str] = {}
        for e in (r.write, *(() if r.rate is None else (r.probe, r.erase)), *(x.query for x in r.readings)):
            if e not in self.tiles:
                self.tiles[e] = self.names.fresh(f"{e.name if isinstance(e, Var) else 'vector'}_tile")
        self.vectors: list[str] = []

    def slots(self) -> Slots:
        r, taken = self.r, self.r.rate is not None
        shared = r.erase == r.write
        readings = [self._store(x.store, x.accumulator, x) for x in r.readings]
        values: dict[str, object] = {
            "vectors": list(self.tiles.values()), "taken": taken, "shared": shared,
            "squares": self._squares(), "strips": self._strips(), "heads": unravel(r.heads),
            "value_var": r.value.var, "value_first": self.value_first, "value_count": str(self.values),
            "key_first": self.key_first, "key_count": str(self.keys), "time": r.time.var,
            "step_count": extent_text(r.time.extent), "first": self._first(), "keys": self._key_part(),
            "coefficients": self._coefficients(), "values": self._value_part(), "write": self.tiles[r.write],
            "probe": self.tiles.get(r.probe, ""), "erase": self.tiles.get(r.erase, ""), "readings": readings,
            "last": self._store(r.last, r.state, None) if r.last is not None else None,
        }  # fmt: skip
        main = Function(self.kernel, "", "Shape::THREADS, 1", values)
        exprs = (r.first, r.decay, r.rate or r.decay, r.probe, r.erase, r.added, r.write)
        more = tuple(e for x in r.readings for e in (x.query, x.store.value))
        return Slots(
            "cuda/recurrence.cu.j2", {"threads": main.threads, **values}, (*exprs, *more), main.parameters,
            product_text(r.heads), tuple(dict.fromkeys(self.vectors)), self._launch(main), complete=True,
            others=self._instances,
        )  # fmt: skip

    def _squares(self) -> list[str]:
        taken, shared = self.r.rate is not None, self.r.erase == self.r.write
        meets = bool(self.r.readings) or (taken and not shared)
        return ["fade", *(["pull"] if taken else []), *(["meets"] if meets else [])]

    def _strips(self) -> list[str]:
        return ["added", *(["finds"] if self.r.rate is not None else []), *(["results"] if self.r.readings else [])]

    def _scope(self, rows: Sequence[str], inner: Inner) -> Scope:
        scope = Scope(self.kernel, self.names, rows, inner)
        for access in self.by_name.values():
            scope.note(access)
        return scope

    def _along_keys(self, *rows: str) -> Scope:
        inside = None if self.keys % 16 == 0 else f"{self.key_first} < {self.keys}"
        return self._scope([*self.heads, *rows], Inner(self.r.key.var, self.key_first, self.keys, inside))

    def _along_values(self, *rows: str) -> Scope:
        inside = f"{self.value_first} < {self.values}"
        return self._scope([*self.heads, *rows], Inner(self.r.value.var, self.value_first, self.values, inside))

    def _needed(self, exprs: Iterable[Expr]) -> list[Access]:
        names = {n for e in exprs for n in free_vars(e)}
        return [a for n, a in self.by_name.items() if n in names]

    def _part(self, scope: Scope, named: Sequence[tuple[str, str, Expr]]) -> PartText:
        """(place, name, expression): values of a vector, or of one element where nothing moves."""
        accesses = self._needed(e for _, _, e in named)
        moving = [a for a in accesses if scope.moves(*a.indices, a.guard)]
        before = [line for a in accesses if a not in moving for line in scope.load_row(a)]
        before += scope.pointers(moving)
        whole = [a for a in moving if scope.is_vector(a)]
        self.vectors += [a.operand for a in whole]
        before += [scope.load_vector(a) for a in whole]
        elements = [scope.element(a) for a in moving] + scope.printer.block([(n, e) for _, n, e in named])
        scope.printer.named.clear()
        if any(mentions(line, scope.inner.var) for line in elements):
            elements.insert(0, f"const int {scope.inner.var} = {scope.inner.first} + n;")
        return PartText(before, elements, [(place, n) for place, n, _ in named])

    def _first(self) -> PartText:
        value = self.r.value.var
        part = self._part(self._along_keys(value), [("", "before", self.r.first)])
        return _defining(value, f"min(first_value + own, {self.values} - 1)", part)

    def _of_step(self, part: PartText) -> PartText:
        """A part that is worked out for step `start + own`, or for the last one where that is past it."""
        return _defining(self.r.time.var, f"min(start + own, {extent_text(self.r.time.extent)} - 1)", part)

    def _key_part(self) -> PartText:
        named = [(tile, self.names.fresh("vector"), e) for e, tile in self.tiles.items()]
        return self._of_step(self._part(self._along_keys(self.r.time.var), named))

    def _coefficients(self) -> PartText:
        r = self.r
        scope = self._scope([*self.heads, r.time.var], Inner(self.names.fresh("alone"), "0", LONGEST_VECTOR))
        wanted = [("decay", r.decay), *([] if r.rate is None else [("rate", r.rate)])]
        part = self._part(scope, [(place, self.names.fresh(f"own_{place}"), e) for place, e in wanted])
        return self._of_step(PartText([*part.before, *part.elements], [], part.results))

    def _value_part(self) -> PartText:
        return self._of_step(self._part(self._along_values(self.r.time.var), [("", "gain", self.r.added)]))

    def _store(self, store: Store, acc: str, reading: Reading | None) -> StoreText:
        r = self.r
        inner, row = Inner(r.value.var, self.value_first, self.values), r.time.var
        if reading is None:
            inner, row = Inner(r.key.var, self.key_first, self.keys), r.value.var
        scope = self._scope([*self.heads, row], inner)
        accesses = [a for a in self._needed([store.value]) if a.name != acc]
        moving = [a for a in accesses if scope.moves(*a.indices, a.guard)]
        before = [line for a in accesses if a not in moving for line in scope.load_row(a)]
        before += scope.pointers([*moving, store])
        whole = [a for a in moving if scope.is_vector(a)]
        places: tuple[Access | Store, ...] = (*whole, store)
        self.vectors += [x.operand for x in places if scope.is_vector(x)]
        vectors, elements, stores = body(scope, (store,), moving, [scope.load_vector(a) for a in whole])
        query = "" if reading is None else self.tiles[reading.query]
        return StoreText(query, acc, [*before, *vectors], elements, stores)

    def _configs(self, width: int) -> tuple[Config, ...]:
        return self.table.of("recurrence", {"K": self.keys, "V": self.values})[width]

    def shape(self, c: Config) -> str:
        counts = (len(self.tiles), len(self._squares()), len(self._strips()))
        sizes = (c.tile("CHUNK"), c.tile("BLOCK_V"), self.keys, c.warps, *counts)
        return f"specc::RecurrenceShape<{', '.join(map(str, sizes))}>"

    def _launch(self, main: Function) -> tuple[str, ...]:
        grid = f"specc::Grid{{rows, specc::ceil_div({self.values}, Shape::VALUES)}}"
        call = f"return run({main.template_id('Shape')}, {grid}, Shape::THREADS, Shape::shared_bytes());"
        lines = {w: [f"using Shape = {self.shape(self._configs(w)[-1])};", call] for w in WIDTHS}
        return (*main.runner("run"), *by_storage(lines))

    def _instances(self, width: int) -> tuple[Instance, ...]:
        (c,) = self._configs(width)
        chunk, block, keys = c.tile("CHUNK"), c.tile("BLOCK_V"), -(-self.keys // 16) * 16
        vectors, squares, strips = len(self.tiles), len(self._squares()), len(self._strips())
        numbers = block * keys + vectors * chunk * keys + squares * chunk**2 + strips * block * chunk + 3 * chunk
        name, shape = f"{self.kernel.name}_kernel", self.shape(c)
        return tuple(Instance(f"{name}<Element, {n}, {shape}>", c.warps * 32, numbers * 4) for n in (16 // width, 1))


def _defining(var: str, text: str, part: PartText) -> PartText:
    """`part` after a definition of `var`, if it speaks of it."""
    if not any(mentions(line, var) for line in (*part.before, *part.elements)):
        return part
    return PartText([f"const int {var} = {text};", *part.before], part.elements, part.results)
