"""Strategies for syntax trees: every tree that they draw can be written down."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import strategies as st

from specc import syntax as s
from specc import syntax_spec as m
from specc.format_expr import format_number
from specc.source import Source, Span

AT = Span(Source("generated", ""), 1, 1)
names = st.sampled_from(["a", "b1", "x", "heads", "theta_0", "kv_heads", "D", "ifx", "lets", "π", "Sum", "rounded"])
plain_names = names.filter(lambda n: n != "π")
paths = st.lists(plain_names, min_size=1, max_size=3).map(".".join)
texts = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Zl", "Zp"]), max_size=12)
comments = st.lists(texts.map(str.strip).filter(lambda t: not t.startswith("#")), max_size=2).map(tuple)


@st.composite
def numbers(draw: st.DrawFn) -> s.Number:
    value = Fraction(draw(st.integers(0, 10**20))) * Fraction(10) ** draw(st.integers(-25, 25))
    text = draw(st.sampled_from(["1", "1.0"]))
    return s.Number(AT, value, format_number(s.Number(AT, value, text)))


def expressions(dotted: bool = False, leaves: int = 12) -> st.SearchStrategy[s.Expr]:
    """Expressions of every kind; `dotted`: names may be those of another layer class."""
    names_ = st.one_of(names, paths.filter(lambda p: "." in p)) if dotted else names
    atoms = st.one_of(numbers(), names_.map(lambda n: s.Name(AT, n)))
    return st.recursive(atoms, _compound, max_leaves=leaves)


def _compound(inner: st.SearchStrategy[s.Expr]) -> st.SearchStrategy[s.Expr]:
    items = st.lists(st.one_of(inner, st.just(s.Dots(AT))), max_size=3).map(tuple)
    args = st.lists(inner, max_size=3).map(tuple)
    maybe = st.none() | inner
    functions = st.sampled_from(["exp", "sqrt", "max", "given", "sigmoid"])
    return st.one_of(
        st.builds(s.Index, st.just(AT), plain_names, items),
        st.builds(s.Call, st.just(AT), functions, args),
        st.builds(s.Unary, st.just(AT), st.sampled_from(["-", "not"]), inner),
        st.builds(
            s.Binary, st.just(AT), st.sampled_from(["+", "-", "·", "/", "//", "%", "^", "and", "or"]), inner, inner
        ),
        _chains(inner),
        st.builds(s.Big, st.just(AT), st.sampled_from(["Σ", "Π", "Max"]), plain_names, maybe, maybe, inner),
        st.builds(s.Softmax, st.just(AT), plain_names, inner, maybe),
        st.builds(s.If, st.just(AT), inner, inner, inner),
    )


def _chains(inner: st.SearchStrategy[s.Expr]) -> st.SearchStrategy[s.Expr]:
    ops = st.lists(st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), min_size=1, max_size=3)
    return ops.flatmap(
        lambda o: st.lists(inner, min_size=len(o) + 1, max_size=len(o) + 1).map(
            lambda a: s.Chain(AT, tuple(o), tuple(a))
        )
    )


exprs = expressions(leaves=4)
dims = st.lists(st.one_of(exprs, st.just(s.Dots(AT))), max_size=3).map(tuple)
tensors = st.builds(s.Tensor, st.just(AT), plain_names, dims, st.booleans(), st.booleans())


@st.composite
def params(draw: st.DrawFn) -> s.Param:
    kind = draw(st.sampled_from(["real", "nat", "flag", "label"]))
    return s.Param(AT, draw(plain_names), kind, draw(st.none() | exprs), draw(st.booleans()))


def some(strategy: st.SearchStrategy[object], least: int = 0) -> st.SearchStrategy[tuple[object, ...]]:
    return st.lists(strategy, min_size=least, max_size=2).map(tuple)


defs = st.builds(s.Def, st.just(AT), comments, plain_names, some(params()), exprs, st.none() | exprs)
statements = st.one_of(
    st.builds(s.Let, st.just(AT), comments, plain_names, some(plain_names), exprs),
    st.builds(s.Rec, st.just(AT), comments, plain_names, some(st.tuples(plain_names, exprs), 1), exprs, exprs),
    st.builds(s.Require, st.just(AT), comments, exprs),
    st.builds(s.Prefill, st.just(AT), comments, plain_names),
    st.builds(s.Equation, st.just(AT), comments, plain_names, dims, exprs),
)
ops = st.builds(
    s.Op, st.just(AT), comments, plain_names, some(tensors, 1), some(params()), some(tensors, 1), some(statements)
)


@st.composite
def ops_files(draw: st.DrawFn) -> s.OpsFile:
    items = draw(some(st.one_of(defs, ops)))
    header = draw(comments) if items else ()
    return s.OpsFile(AT, items, header, draw(comments))  # type: ignore[arg-type]


spec_exprs = expressions(dotted=True, leaves=3)
spec_dims = st.lists(st.one_of(spec_exprs, st.just(s.Dots(AT))), max_size=3).map(tuple)
sizes = st.builds(m.Size, st.just(AT), comments, plain_names, spec_exprs)
inline_sizes = st.builds(m.Size, st.just(AT), st.just(()), plain_names, spec_exprs)
name_nodes = plain_names.map(lambda n: s.Name(AT, n))
maybe_name = st.none() | plain_names


@st.composite
def domains(draw: st.DrawFn) -> m.Domain:
    ranges = draw(some(st.builds(m.Range, st.just(AT), comments, plain_names, spec_exprs, spec_exprs, texts)))
    page = draw(st.none() | st.builds(m.Size, st.just(AT), comments, st.just("page"), spec_exprs))
    return m.Domain(AT, draw(comments), ranges, page)  # type: ignore[arg-type]


layer_classes = st.builds(m.LayerClass, st.just(AT), comments, plain_names, texts, spec_exprs, some(inline_sizes))


def declarations(keyword: str, index: bool) -> st.SearchStrategy[m.Declarations]:
    kinds = st.booleans() if index else st.just(False)
    tensor = st.builds(s.Tensor, st.just(AT), plain_names, spec_dims, kinds)
    declared = st.builds(m.Declared, st.just(AT), comments, tensor)
    return st.builds(m.Declarations, st.just(AT), comments, st.just(keyword), some(declared))


args = st.builds(
    m.Arg, st.just(AT), maybe_name, st.none() | name_nodes, plain_names, st.none() | spec_dims, st.just(AT)
)
outs = st.builds(m.Out, st.just(AT), plain_names, st.none() | spec_dims)
binds = st.builds(m.Bind, st.just(AT), plain_names, plain_names)
results = st.one_of(outs, st.builds(m.Cut, st.just(AT), some(outs, 1)))
applies = st.builds(m.Apply, st.just(AT), maybe_name, some(args, 1), some(results, 1), some(binds))
axes = st.one_of(
    st.builds(m.ViewAxis, st.just(AT), spec_exprs, st.none(), st.none()),
    st.builds(m.ViewAxis, st.just(AT), spec_exprs, spec_exprs, spec_exprs),
)
pieces = st.builds(m.Piece, st.just(AT), texts, some(axes), st.none() | spec_dims)
values_of_weights = st.one_of(some(pieces, 1), st.builds(m.Tied, st.just(AT), paths, plain_names))
weights = st.builds(m.Weight, st.just(AT), plain_names, spec_dims, values_of_weights)
constants = st.builds(m.Constant, st.just(AT), plain_names, st.none() | spec_exprs)
layer_sets = st.sampled_from(["-", "all", "x"]).map(lambda n: s.Name(AT, n))
rows = st.builds(
    m.Row, st.just(AT), comments, paths, name_nodes, layer_sets, some(constants), some(applies), some(weights)
)
storages = st.builds(m.Storage, st.just(AT), comments, plain_names, name_nodes)
rounds = st.builds(m.Round, st.just(AT), comments, paths.map(lambda n: s.Name(AT, n)), name_nodes)
json_values = st.recursive(
    st.one_of(texts.map(lambda t: m.Text(AT, t)), spec_exprs),
    lambda inner: st.one_of(
        st.builds(m.ListValue, st.just(AT), some(inner)),
        st.builds(m.Each, st.just(AT), some(st.tuples(name_nodes, inner), 1)),
    ),
    max_leaves=4,
)
entries = st.builds(m.Entry, st.just(AT), comments, paths, json_values)


def line(keyword: str, text: st.SearchStrategy[str]) -> st.SearchStrategy[m.Line]:
    return st.builds(m.Line, st.just(AT), comments, st.just(keyword), text, st.just(AT))


stream_tensors = st.builds(s.Tensor, st.just(AT), plain_names, spec_dims)
keys = st.sampled_from(["google/gemma-4-31B", "a/b", "x.y/z_1.2-3"])
spec_files = st.builds(
    m.SpecFile,
    span=st.just(AT),
    model=st.builds(m.ModelLine, st.just(AT), comments, keys, st.sampled_from(["1", "1.0", "2.10.3"])),
    official=st.none() | line("class", paths),
    about=st.none() | line("about", texts),
    uses=some(line("use", texts)),
    domain=domains(),
    sizes=st.none() | st.builds(m.Sizes, st.just(AT), comments, some(sizes)),
    layers=st.builds(m.Layers, st.just(AT), comments, spec_exprs, some(layer_classes)),
    inputs=st.none() | declarations("inputs", index=True),
    stream=st.builds(m.Stream, st.just(AT), comments, stream_tensors, name_nodes, name_nodes),
    output=st.builds(m.Output, st.just(AT), comments, some(name_nodes, 1)),
    states=st.none() | declarations("state", index=False),
    checkpoint=st.none() | st.builds(m.Checkpoint, st.just(AT), comments, texts, st.none() | texts),
    nodes=st.builds(m.Nodes, st.just(AT), comments, some(rows)),
    profile=st.builds(m.Profile, st.just(AT), comments, some(storages), some(rounds)),
    config=st.none() | st.builds(m.Config, st.just(AT), comments, some(entries)),
    header=comments,
    trailing=comments,
)
