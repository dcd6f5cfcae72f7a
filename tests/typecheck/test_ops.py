"""Op libraries: what is right. Wrong ones are in tests/diagnostics."""

from __future__ import annotations

import pytest

from specc.diagnostics import SpecError
from specc.library import load_library
from specc.ops import Library, Named, Num, Reduce, Size, Sort, free_vars, walk
from specc.parse import parse_ops
from specc.source import Source
from specc.typecheck.ops import check_library


def check(text: str) -> Library:
    return check_library([parse_ops(Source("test.ops", text))])


def mistakes(text: str) -> SpecError:
    with pytest.raises(SpecError) as caught:
        check(text)
    return caught.value


def test_all_mistakes_of_all_files_are_reported_at_once_and_in_order() -> None:
    one = "op f(x[T]) -> y[T]\n  y[t] = z[t] + w\nop g(x[T]) -> y[T]\n  y[t] = sine(x[t])"
    two = "def s(x) = x + a"
    with pytest.raises(SpecError) as caught:
        check_library([parse_ops(Source("b.ops", one)), parse_ops(Source("a.ops", two))])
    found = [(d.span.source.name, d.code) for d in caught.value.diagnostics if d.span]
    assert found == [("a.ops", "E301"), ("b.ops", "E302"), ("b.ops", "E301"), ("b.ops", "E303")]


def test_a_mistake_in_a_let_is_reported_once_however_often_it_is_used() -> None:
    error = mistakes("op f(x[T]) -> y[T]\n  let z[i] = x[i] + q\n  y[t] = z[t]·z[0] + Σ_j z[j]")
    assert [d.code for d in error.diagnostics] == ["E301"]


def test_the_shipped_library_is_right_and_its_expressions_close() -> None:
    library = load_library()
    assert [o.name for o in library.ops] == sorted(o.name for o in library.ops)
    for op in library.ops:
        for q in op.equations:
            assert set(free_vars(q.expr)) <= {i.name for i in q.indices if hasattr(i, "name")}, op.name


def test_a_range_is_inferred_past_a_sum_over_the_same_variable() -> None:
    text = "op f(x[T, H], w[K]) -> y[T]\n  let m = Σ_j x[0, j]\n  y[t] = Σ_j w[j]·(m + Σ_j x[t, j])"
    (op,) = check(text).ops
    sums = [n for n in walk(op.equations[0].expr) if isinstance(n, Reduce)]
    assert [s.extent for s in sums] == [Size("K"), Size("H"), Size("H")]


def test_a_let_does_not_capture_the_index_it_is_given() -> None:
    text = (
        "op f(x[H, H]) -> y[H]\n  let s[a] = Σ_b x[a, b]\n  let u[a, b] = s[a]·x[b, a]\n  y[b] = u[b, b] + Σ_a u[b, a]"
    )
    (op,) = check(text).ops
    assert free_vars(op.equations[0].expr) == ("b",)


def test_a_let_keeps_its_name_as_a_place_to_round() -> None:
    (op,) = check("op f(x[T]) -> y[T]\n  let n[i] = x[i]²\n  y[t] = n[t]").ops
    assert isinstance(op.equations[0].expr, Named)


@pytest.mark.parametrize(
    ("literal", "sort"), [("2", Sort.INDEX), ("2.0", Sort.REAL), ("1e3", Sort.INDEX), ("1e-3", Sort.REAL)]
)
def test_a_whole_number_without_a_point_is_an_index(literal: str, sort: Sort) -> None:
    (op,) = check(f"op f(x[T]) -> y[T]\n  y[t] = {literal}").ops
    assert isinstance(op.equations[0].expr, Num) and op.equations[0].expr.sort is sort
