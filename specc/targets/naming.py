"""Names of generated files: none from a formula collides with a language, or with the names that templates use."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeVar

from specc.formula_text import snake
from specc.kernels import Access, Attention, Axis, Contraction, Kernel, Operand, Pointwise, Stage, Store, Table
from specc.ops import Apply, Expr, ScalarDef, Size, Sort, Var
from specc.trees import rebuild, substitute

T = TypeVar("T")


class Names:
    """Hands out names that are free."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self.taken = set(taken)

    def fresh(self, wanted: str) -> str:
        """`wanted`, or with a number after it."""
        name, count = wanted, 2
        while name in self.taken:
            name, count = f"{wanted}_{count}", count + 1
        self.taken.add(name)
        return name


def found(node: object, kind: type[T]) -> list[T]:
    """All values of type `kind` inside a schedule, in order."""
    return [v for v in inside(node) if isinstance(v, kind)]


def inside(node: object) -> list[object]:
    """All values inside a schedule, and itself, in order."""
    values: list[object] = []
    queue: list[object] = [node]
    while queue:
        value = queue.pop()
        values.append(value)
        if isinstance(value, tuple):
            queue.extend(reversed(value))
        else:
            names = _INNER.get(type(value))
            queue.extend(getattr(value, name) for name in (_inner_fields(value) if names is None else names))
    return values


_INNER: dict[type, tuple[str, ...]] = {}


def _inner_fields(value: object) -> tuple[str, ...]:
    """Fields of a part of a schedule, last first."""
    names = _INNER.get(type(value))
    if names is None:
        names = ()
        if is_dataclass(value) and not isinstance(value, type | ScalarDef):
            names = tuple(f.name for f in reversed(fields(value)))
        _INNER[type(value)] = names
    return names


@dataclass(frozen=True)
class Vocabulary:
    """What a generated file of a target says itself."""

    reserved: frozenset[str]
    """Words of the language and of its libraries."""
    template: frozenset[str]
    """Names that templates use as they stand."""
    derived: re.Pattern[str]
    """Forms of the names that templates and printers make."""

    def legal_name(self, name: str) -> str:
        """`name`, or another one where a generated file has a use of its own for it."""
        bad = name in self.reserved or name in self.template or self.derived.fullmatch(name) is not None
        if not bad:
            return name
        stem = name.strip("_")
        return f"{stem}_" if stem[:1].isalpha() else f"x{stem}_"

    def local_names(self, kernel: Kernel) -> Names:
        """The names that a device function of `kernel` may still choose: none that its schedule has."""
        values = inside(kernel.schedule)
        taken = [*_axes(kernel, values), *kernel.sizes, *(v.name for v in values if isinstance(v, Access))]
        taken += [n for v in values if isinstance(v, Stage) for n in (v.name, v.raw)]
        if isinstance(kernel.schedule, Contraction | Attention):
            taken.append(kernel.schedule.accumulator)
        return Names([*taken, *sorted(self.template)])

    def legal(self, kernel: Kernel, taken: Iterable[str]) -> Kernel:
        """The same kernel with every name of its schedule, operands, tables, sizes and functions fit for a file that
        has the names `taken` at its top."""
        values = inside(kernel.schedule)
        other = [v.name for v in values if isinstance(v, Access)] + [v.name for v in values if isinstance(v, Stage)]
        other += [o.name for o in kernel.operands] + [t.name for t in kernel.tables] + list(kernel.sizes)
        names = Names(taken)
        called = _called(values)
        calls = {fn.name: names.fresh(self.legal_name(snake(fn.name))) for fn in called}
        renamed = {n: names.fresh(self.legal_name(n)) for n in dict.fromkeys(other)}
        renamed_axes = {n: names.fresh(self.legal_name(n)) for n in dict.fromkeys(_axes(kernel, values))}
        same = all(old == new for d in (renamed, renamed_axes) for old, new in d.items())
        if same and all(calls[fn.name] == snake(fn.name) and self._keeps(fn, calls) for fn in called):
            return kernel
        return _Renaming(self, renamed, renamed_axes, calls).kernel(kernel)

    def _keeps(self, fn: ScalarDef, calls: Mapping[str, str]) -> bool:
        """Whether the parameters of a scalar function are fit as they are."""
        functions = {*calls.values()}
        return all(p.name == self.legal_name(p.name) and p.name not in functions for p in fn.params)


def _axes(kernel: Kernel, values: Sequence[object]) -> list[str]:
    axes = [v.var for v in values if isinstance(v, Axis)]
    return [*axes, kernel.schedule.inner] if isinstance(kernel.schedule, Pointwise) else axes


def _called(values: Sequence[object]) -> list[ScalarDef]:
    """Scalar functions that a schedule calls, and those that they call, each once."""
    functions: dict[str, ScalarDef] = {}
    queue = [v.fn for v in values if isinstance(v, Apply)][::-1]
    while queue:
        fn = queue.pop()
        if fn.name not in functions:
            functions[fn.name] = fn
            queue.extend(reversed([v.fn for v in inside(fn.computed or fn.body) if isinstance(v, Apply)]))
    return list(functions.values())


class _Renaming:
    """Replaces names of axes, of scalar functions, and all other names, throughout a kernel."""

    def __init__(
        self, vocabulary: Vocabulary, names: dict[str, str], axes: dict[str, str], calls: dict[str, str]
    ) -> None:
        self.vocabulary, self.names, self.axes, self.calls = vocabulary, names, axes, calls

    def kernel(self, kernel: Kernel) -> Kernel:
        return replace(
            kernel,
            schedule=self.tree(kernel.schedule),
            operands=self.tree(kernel.operands),
            tables=tuple(replace(t, name=self.names[t.name]) for t in kernel.tables),
            sizes=tuple(self.names[s] for s in kernel.sizes),
        )

    def tree(self, x: Any) -> Any:
        """A slot, or a tuple of them."""
        if isinstance(x, tuple):
            return tuple(self.tree(item) for item in x)
        if isinstance(x, Var) and x.sort is Sort.INDEX and x.name in self.axes:
            return replace(x, name=self.axes[x.name])
        if not is_dataclass(x) or isinstance(x, type | ScalarDef):
            return x
        own = self._own(x)
        rest = {f.name: getattr(x, f.name) for f in fields(x) if f.name not in own}
        return replace(x, **{n: self.tree(v) for n, v in rest.items() if not isinstance(v, str)}, **own)

    def _own(self, x: Any) -> dict[str, Any]:
        """New values of the fields that are names."""
        match x:
            case Var(name) | Size(name):
                return {"name": self._local(name)}
            case Apply(fn):
                return {"fn": self.function(fn)}
            case Axis(var):
                return {"var": self.axes[var]}
            case Pointwise(inner=inner):
                return {"inner": self.axes[inner]}
            case Access(name, operand):
                return {"name": self.names[name], "operand": self.names[operand]}
            case Store(operand):
                return {"operand": self.names[operand]}
            case Operand(name, axes=axes):
                return {"name": self.names[name], "axes": tuple(self._axis(a) for a in axes)}
            case Stage(name) | Table(name):
                return {"name": self.names[name]}
        return {}

    def function(self, fn: ScalarDef) -> ScalarDef:
        """A scalar function under its new name, with parameters that shadow nothing."""
        names = Names(self.calls.values())
        params = {p.name: replace(p, name=names.fresh(self.vocabulary.legal_name(p.name))) for p in fn.params}
        body = self._inside(substitute(fn.body, dict(params)))
        computed = None if fn.computed is None else self._inside(substitute(fn.computed, dict(params)))
        name = self.calls[fn.name] if self.calls[fn.name] != snake(fn.name) else fn.name
        return replace(fn, name=name, params=tuple(params.values()), body=body, computed=computed)

    def _inside(self, e: Expr) -> Expr:
        """The body of a function, which knows its parameters only."""
        inner = rebuild(e, self._inside)
        return replace(inner, fn=self.function(inner.fn)) if isinstance(inner, Apply) else inner

    def _local(self, name: str) -> str:
        stage = name.removesuffix("_raw")
        if name not in self.names and stage != name and stage in self.names:
            return f"{self.names[stage]}_raw"
        return self.names.get(name, name)

    def _axis(self, name: str) -> str:
        return self.axes.get(name, self.names.get(name, name))
