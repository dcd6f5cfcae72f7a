"""Smaller models of the same form: named sizes replaced by numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from specc import syntax as s
from specc import syntax_spec as m
from specc.diagnostics import Diagnostic, SpecError, nearest
from specc.source import Span


def reduce_spec(spec: m.SpecFile, overrides: Mapping[str, int]) -> m.SpecFile:
    """`spec` with sizes replaced: `{"hidden": 48, "sliding.D": 8, "layers": 6}`; `sliding__D` is the same as
    `sliding.D`, and `D` alone is the size of that name in every layer class that has one. What is written in terms of
    them follows. Raises SpecError (E290, E291)."""
    wanted = {name.replace("__", "."): value for name, value in overrides.items()}
    names = size_names(spec)
    errors = [Diagnostic("E290", f"no size `{n}`", None, nearest(n, names)) for n in wanted if n not in names]
    errors += [
        Diagnostic("E291", f"`{n}` is to be a positive integer, not {v!r}", None)
        for n, v in wanted.items()
        if isinstance(v, bool) or not isinstance(v, int) or v < 1
    ]
    if errors:
        raise SpecError(errors)
    return _replace(spec, wanted)


def size_names(spec: m.SpecFile) -> tuple[str, ...]:
    """The names that `reduce_spec` takes."""
    sizes = [x.name for x in spec.sizes.sizes] if spec.sizes else []
    inside = [(c.name, x.name) for c in spec.layers.classes for x in c.sizes]
    return tuple(dict.fromkeys(["layers", *sizes, *(f"{c}.{x}" for c, x in inside), *(x for _, x in inside)]))


def _replace(spec: m.SpecFile, wanted: Mapping[str, int]) -> m.SpecFile:
    sizes = spec.sizes
    if sizes is not None:
        sizes = replace(sizes, sizes=tuple(_size(x, wanted.get(x.name)) for x in sizes.sizes))
    classes = tuple(
        replace(c, sizes=tuple(_size(x, wanted.get(f"{c.name}.{x.name}", wanted.get(x.name))) for x in c.sizes))
        for c in spec.layers.classes
    )
    count = _number(wanted["layers"], spec.layers.count.span) if "layers" in wanted else spec.layers.count
    return replace(spec, sizes=sizes, layers=replace(spec.layers, count=count, classes=classes))


def _size(size: m.Size, value: int | None) -> m.Size:
    return size if value is None else replace(size, value=_number(value, size.value.span))


def _number(value: int, span: Span) -> s.Number:
    return s.Number(span, Fraction(value), str(value))
