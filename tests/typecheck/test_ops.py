"""Op libraries: one wrong example per mistake, and what is right."""

from __future__ import annotations

import re

import pytest

from specc.diagnostics import SpecError
from specc.library import load_library
from specc.ops import Library, Named, Num, Reduce, Size, Sort, free_vars, walk
from specc.parse import parse_ops
from specc.source import Source
from specc.typecheck.ops import check_library

MARK = re.compile("»")
WRONG: tuple[tuple[str, str, str, str], ...] = (
    # code, text with » before the place, part of the message, part of the help
    ("E301", "op f(x[T, H]) -> y[T, H]\n  y[t, i] = x[t, i] · »esp", "unknown name `esp`", "known here: `H`, `T`, `i`, `t`"),
    ("E301", "op f(x[T, H]; eps: real) -> y[T, H]\n  y[t, i] = x[t, i] · »ep", "unknown name `ep`", "did you mean `eps`?"),
    ("E301", "op f(x[T, H]) -> y[T, »K]\n  y[t, i] = x[t, i]", "unknown name `K`", "known here: `H`, `T`"),
    ("E301", "op f(x[L]) -> y[L]\n  y[i] = »softmax_l(x[i])", "outside the range of `l`", "Σ_l softmax_l(…)"),
    ("E302", "op f(x[T]) -> y[T]\n  y[t] = »xx[t]", "unknown tensor `xx`", "did you mean `x`?"),
    ("E302", "op f(x[T]) -> y[T]\n  y[t] = Σ_j »z[t, j]", "unknown tensor `z`", "known here: `x`"),
    ("E303", "op f(x[T]) -> y[T]\n  y[t] = »silo(x[t])\ndef silu(x) = x", "unknown function `silo`", "did you mean `silu`?"),
    ("E304", "op f(x[T]) -> y[T]\n  y[t] = »max(x[t])", "`max` takes 2 arguments, 1 is given", ""),
    ("E304", "def g(a, b) = a + b\nop f(x[T]) -> y[T]\n  y[t] = »g(x[t], 1, 2)", "`g` takes 2 arguments, 3 are given", ""),
    ("E305", "op f(x[T]; act: label = silu) -> y[T]\n  y[t] = x[t] · »act", "label `act` has no value", ""),
    ("E306", "op f(x[T]) -> y[T]\n  y[t] = 2 · »x", "`x` needs indices", "write `x[…]`"),
    ("E307", "op f(x[T]) -> y[T]\n  let n[i] = x[i]\n  y[t] = x[»..]·n[t]", "only where an operand has leading axes", ""),
    ("E307", "op f(x[T]) -> y[».., T]\n  y[.., t] = x[t]", "no operand has leading axes", "give an operand `..`"),
    ("E307", "op f(x[T, ».., H]) -> y[T]\n  y[t] = 0", "`..` stands first among the axes", ""),
    ("E307", "op f(x[.., H]) -> y[.., H]\n  let n[a] = x[.., a]\n  y[.., i] = n[»..]", "`..` is no index of `n`", ""),
    ("E307", "op f(x[.., H]) -> y[.., H]\n  rec R[t < H, a < H] from 0 = R[».., a]\n  y[.., i] = R[i, i]", "`..` is no index of `R`", ""),
    ("E308", "op f(x[T, H]) -> y[T, H]\n  y[t, i] = »x[t]", "`x` has 2 axes, 1 index is given", ""),
    ("E308", "op f(x[.., H]) -> y[.., H]\n  y[.., i] = x[»0, i]", "`..` does not stand where `x` has its leading axes", ""),
    ("E308", "op f(x[T]) -> y[T]\n  let z[a, b] = x[a]·x[b]\n  y[t] = »z[t]", "`z` takes 2 indices, 1 index is given", ""),
    ("E308", "op f(x[T, H]) -> y[T, H]\n  »y[t] = x[t, 0]", "`y` has 2 axes, 1 index is given", ""),
    ("E308", "op f(x[T]) -> y[T]\n  y[»t + 1] = x[t]", "expected an index variable here", ""),
    ("E309", "op f(x[T]) -> y[T]\n  let a = »a + 1\n  y[t] = a", "`a` is defined by itself", "use `rec` for a recurrence"),
    ("E309", "def »g(x) = h(x)\ndef h(x) = g(x)", "`g` is defined by itself", ""),
    ("E310", "op f(x[T]) -> y[T]\n  y[t] = x[»x[t]]", "expected an index, found a real number", ""),
    ("E310", "op f(x[T]) -> y[T]\n  y[t] = x[t] // 2", "expected an index, found a real number", ""),
    ("E310", "op f(x[T]) -> y[T]\n  y[t] = if »x[t] then 1 else 0", "expected a condition, found a real number", ""),
    ("E310", "op f(x[T]) -> y[T]\n  y[t] = 1 + (»x[t] > 0)", "expected a number, found a condition", ""),
    ("E310", "op f(x[T]) -> y[T]\n  y[t] = »x[t] > 0", "expected a number, found a condition", ""),
    ("E310", "op f(x[T]; »eps: real) -> y[T]\n  y[t] = x[t]\n  require eps", "", ""),
    ("E310", "op f(x[T]) -> y[T]: index\n  y[t] = »x[t]", "`y` holds integers, this is a real number", ""),
    ("E310", "op f(x[T]; eps: real) -> y[T, »eps]\n  y[t, i] = x[t]", "a dimension is an index expression over sizes", ""),
    ("E310", "def f(x) = x\n  computed as »x > 0", "the two forms differ: a real number and a condition", ""),
    ("E310", "def f(»x: flag) = 1", "a parameter of a scalar function is real or nat", ""),
    ("E310", "def g(i: nat) = i\nop f(x[T]) -> y[T]\n  y[t] = g(»x[t])", "`g` wants an index for `i`", ""),
    ("E311", "op f(x[T, L]) -> y[T]\n  let p[l] = softmax_l(x[0, l])\n  y[t] = »p[0]", "only be read at an index variable", ""),
    ("E311", "op f(x[L, L]) -> y[L]\n  let p[a, l] = softmax_l(x[a, l])\n  y[t] = »p[t, t]", "score depends on it as well", ""),
    ("E312", "op f(x[T]; cap: real?) -> y[T]\n  y[t] = if »given(cop) then cap else x[t]", "takes the name of one optional", "did you mean `cap`?"),
    ("E312", "op f(x[T]) -> y[T]\n  y[t] = if »given(x) then 1 else x[t]", "takes the name of one optional", ""),
    ("E313", "op f(x[T]) -> y[T]\n  y[t] = »Σ_j x[j + 1]", "the range of `j` is not to be seen from its uses", "write the range: `Σ_{j < n} …`"),
    ("E314", "op f(x[T, H], w[K]) -> y[T]\n  y[t] = »Σ_j x[t, j]·w[j]", "`j` runs over dimensions that differ: `H`, `K`", ""),
    ("E315", "op f(x[T, »H]; H: real) -> y[T]\n  y[t] = 0", "`H` is a dimension, so it is a nat", ""),
    ("E316", "op f(x[T]; a: flag = »maybe) -> y[T]\n  y[t] = x[t]", "the default of flag `a` is a truth value", ""),
    ("E316", "op f(x[T]; a: label = »1) -> y[T]\n  y[t] = x[t]", "the default of label `a` is a name", ""),
    ("E316", "op f(x[T]; n: nat = »0.5) -> y[T]\n  y[t] = n·x[t]", "the default of nat `n` is an integer", ""),
    ("E316", "op f(x[T]; r: real = »1 < 2) -> y[T]\n  y[t] = r·x[t]", "the default of real `r` is a number", ""),
    ("E317", "op f(x[T]) -> yes[T]\n  »ye[t] = x[t]\n  yes[t] = x[t]", "`ye` is not a result of `f`", "did you mean `yes`?"),
    ("E318", "op »f(x[T]) -> y[T], z[T]\n  y[t] = x[t]", "result `z` of `f` has no equation", ""),
    ("E319", "op f(x[T]) -> y[T]\n  rec »R[t < T] from 0 = R[t - 2] + x[t]\n  y[t] = R[t]", "reads only the step before it", "write `R[t - 1, …]`"),
    ("E320", "op f(x[T], »x[T]) -> y[T]\n  y[t] = x[t]", "name `x` is given twice", ""),
    ("E320", "op f(x[T]; a: real, »a: nat) -> y[T]\n  y[t] = x[t]", "constant `a` is given twice", ""),
    ("E320", "op f(x[T]) -> y[T]\n  y[t] = x[t]\n  »y[t] = 0", "`y` is defined twice", ""),
    ("E320", "op f(x[T, T]) -> y[T, T]\n  y[t, »t] = x[t, t]", "index `t` is given twice", ""),
    ("E320", "def f(x) = x\ndef »f(y) = y", "`f` is defined twice", "first defined at test.ops:1:5"),
    ("E320", "def f(a, »a) = a", "parameter `a` is given twice", ""),
    ("E320", "def »exp(x) = x", "`exp` is built in", ""),
    ("E320", "op f(x[T, D]) -> y[T, D]\n  y[t, »D] = x[t, D]", "`D` is a size or constant of this op already", ""),
    ("E320", "op f(x[T, D]) -> y[T]\n  y[t] = »Σ_D x[t, D]", "`D` is a size or constant of this op already", ""),
    ("E320", "op f(x[T]; a: real) -> y[T]\n  let »a = 1\n  y[t] = a·x[t]", "`a` is a size or constant of this op already", ""),
    ("E320", "op f(x[T]) -> y[T]\n  let g = 2\n  y[»g] = x[g]", "`g` is a let of this op already", ""),
    ("E320", "op f(x[T], »T[T]) -> y[T]\n  y[t] = x[t]·T[t]", "`T` is a size or constant of this op already", ""),
    ("E320", "op f(x[T, H]) -> y[T]\n  let »z[a, a] = x[a, a]\n  y[t] = z[t, t]", "index `a` is given twice", ""),
    ("E320", "op g(x[T]) -> y[T]\n  y[t] = x[t]\nop f(x[T]) -> y[T]\n  prefill g\n  prefill »g\n  y[t] = x[t]", "`prefill` is given twice", ""),
    ("E321", "op f(x[T]) -> y[T]\n  prefill »g\n  y[t] = x[t]", "unknown op `g`", "known here: `f`"),
    ("E321", "op a(x[T]) -> y[T]\n  y[t] = x[t]\nop b(x[T]) -> y[T]\n  prefill a\n  y[t] = x[t]\nop f(x[T]) -> y[T]\n  prefill »b\n  y[t] = x[t]",
     "`b` has a prefill form itself", ""),
    ("E321", "op f(x[T]) -> y[T]\n  prefill »f\n  y[t] = x[t]", "`f` has a prefill form itself", ""),
    ("E322", "op f(x[T]) -> y[T]\n  let »z = x[0]\n  y[t] = x[t]", "`z` is never used", ""),
    ("E322", "op f(x[T]) -> y[T]\n  rec »R[t < T] from 0 = R[t - 1] + x[t]\n  y[t] = x[t]", "`R` is never used", ""),
)  # fmt: skip


def check(text: str) -> Library:
    return check_library([parse_ops(Source("test.ops", text))])


def mistakes(text: str) -> SpecError:
    with pytest.raises(SpecError) as caught:
        check(text)
    return caught.value


@pytest.mark.parametrize(("code", "text", "message", "help_"), WRONG, ids=lambda v: v[:60] if v[:1] == "E" else "")
def test_a_mistake_is_shown_at_its_place(code: str, text: str, message: str, help_: str) -> None:
    clean = text.replace("»", "")
    error = mistakes(clean)
    assert [d.code for d in error.diagnostics] == [code], str(error)
    (found,) = error.diagnostics
    assert message in found.message
    assert help_ in found.help if help_ else True
    place = text.find("»")
    if place >= 0 and message:
        above = text[:place]
        assert found.span is not None
        assert (found.span.line, found.span.column) == (above.count("\n") + 1, place - above.rfind("\n")), str(error)
        caret = str(error).split("\n")[2]
        assert caret.index("^") - caret.index("|") - 2 == found.span.column - 1, str(error)


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
