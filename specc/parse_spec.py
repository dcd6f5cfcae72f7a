"""Model Spec text to syntax tree."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields, replace
from functools import cache
from typing import Any

from lark import Lark, Token
from lark.lark import PostLex

from specc import syntax as s
from specc import syntax_spec as m
from specc.diagnostics import Diagnostic, SpecError, nearest
from specc.gauge import CLOSE, OPEN
from specc.grammar import parser
from specc.limits import MAX_AXES, MAX_USES
from specc.parse import Comments, ExprBuilder, fold_name, run_parser
from specc.recovery import Resync
from specc.source import Source, Span
from specc.syntax_errors import READABLE, TERMINALS

REQUIRED = ("model", "domain", "layers", "stream", "output", "nodes", "profile")
"""Sections that every Model Spec has."""

SECTIONS = (
    "model", "class", "about", "use", "domain", "sizes", "layers", "inputs", "stream", "output", "state", "checkpoint",
    "nodes", "profile", "config",
)  # fmt: skip
READABLE.update({f"K_{name.upper()}": f"`{name}`" for name in SECTIONS})
READABLE.update(
    HEADER="`| Node | Op Spec | Layers | Constants | Wires | Weights |`",
    MODEL_KEY="a model key such as `google/gemma-4-31B`",
    VERSION="a version such as `1.0`",
    PATH="a dotted name",
    AT="`@`",
    ARROW="`->`",
    CONCAT="`++`",
)
TERMINALS.update({f"K_{name.upper()}": (name,) for name in SECTIONS})

RESYNC = Resync(
    re.compile(rf"^({'|'.join(SECTIONS)})\b", re.MULTILINE),
    starts=tuple(f"K_{name.upper()}" for name in SECTIONS),
    by_line=True,
)
"""A section begins with its word at the beginning of a line; inside of it an item is a line."""


class LineEnds(PostLex):
    """Keeps the line ends that close a line: not those of empty lines, inside brackets, or inside a table
    cell."""

    always_accept = ("_NL",)

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        depth, in_row, last = 0, False, "_NL"
        for token in stream:
            if token.type == "_NL":
                if last == "_NL" or depth > 0 or (in_row and last != "VBAR"):
                    continue
            elif last == "_NL":
                depth, in_row = 0, token.type == "VBAR"
            depth = max(0, depth + (token.type in OPEN) - (token.type in CLOSE))
            last = token.type
            yield token


def unquote(token: Token) -> str:
    """The text of a quoted token: `\\"` and `\\\\` stand for a quote and a backslash."""
    return str(token)[1:-1].replace('\\"', '"').replace("\\\\", "\\")


class SpecBuilder(ExprBuilder):
    """Builds a Model Spec. Comments are handed out at the end, in the order of the text."""

    def __init__(self, source: Source, comments: Comments) -> None:
        super().__init__(source)
        self.comments = comments

    def member(self, kids: list[Any]) -> s.Name:
        return self.name(kids)

    def path(self, kids: list[Any]) -> Token:
        return Token.new_borrow_pos("PATH", fold_name(str(kids[0])), kids[0])

    def text(self, kids: list[Any]) -> m.Text:
        return m.Text(self.at(kids[0]), unquote(kids[0]))

    def model(self, kids: list[Any]) -> m.ModelLine:
        return m.ModelLine(self.at(kids[0]), (), str(kids[1]), str(kids[2]))

    def official(self, kids: list[Any]) -> m.Line:
        return m.Line(self.at(kids[0]), (), "class", str(kids[1]), self.at(kids[1]))

    def about(self, kids: list[Any]) -> m.Line:
        return m.Line(self.at(kids[0]), (), str(kids[0]), unquote(kids[1]), self.at(kids[1]))

    def use(self, kids: list[Any]) -> m.Line:
        return self.about(kids)

    def interval(self, kids: list[Any]) -> m.Range:
        name, low, high, unit = kids
        return m.Range(self.at(name), (), fold_name(str(name)), low, high, unquote(unit) if unit else "")

    def size(self, kids: list[Any]) -> m.Size:
        return m.Size(self.at(kids[0]), (), fold_name(str(kids[0])), kids[1])

    def size_line(self, kids: list[Any]) -> m.Size:
        size: m.Size = kids[0]
        return size

    def page(self, kids: list[Any]) -> m.Size:
        return m.Size(self.at(kids[0]), (), "page", kids[1])

    def domain(self, kids: list[Any]) -> m.Domain:
        ranges = tuple(k for k in kids[1:] if isinstance(k, m.Range))
        pages = [k for k in kids[1:] if isinstance(k, m.Size)]
        if len(pages) > 1:
            self.report.error("E105", "`page` is given twice", pages[1].span)
        return m.Domain(self.at(kids[0]), (), ranges, pages[0] if pages else None)

    def sizes(self, kids: list[Any]) -> m.Sizes:
        return m.Sizes(self.at(kids[0]), (), tuple(kids[1:]))

    def class_sizes(self, kids: list[Any]) -> tuple[m.Size, ...]:
        return tuple(kids)

    def layer_class(self, kids: list[Any]) -> m.LayerClass:
        name, label, where, sizes = kids
        return m.LayerClass(
            self.at(name), (), fold_name(str(name)), unquote(label) if label else "", where, sizes or ()
        )

    def layers(self, kids: list[Any]) -> m.Layers:
        return m.Layers(self.at(kids[0]), (), kids[1], tuple(kids[2:]))

    def input(self, kids: list[Any]) -> m.Declared:
        name, dims, index = kids
        tensor = s.Tensor(self.at(name), fold_name(str(name)), dims or (), index is not None)
        return m.Declared(self.at(name), (), tensor)

    def state(self, kids: list[Any]) -> m.Declared:
        return self.input([*kids, None])

    def inputs(self, kids: list[Any]) -> m.Declarations:
        return m.Declarations(self.at(kids[0]), (), str(kids[0]), tuple(kids[1:]))

    def states(self, kids: list[Any]) -> m.Declarations:
        return self.inputs(kids)

    def stream(self, kids: list[Any]) -> m.Stream:
        keyword, name, dims, first, then = kids
        tensor = s.Tensor(self.at(name), fold_name(str(name)), dims or ())
        return m.Stream(self.at(keyword), (), tensor, self.name([first]), self.name([then]))

    def output(self, kids: list[Any]) -> m.Output:
        return m.Output(self.at(kids[0]), (), tuple(self.name([k]) for k in kids[1:]))

    def checkpoint(self, kids: list[Any]) -> m.Checkpoint:
        keyword, prefix, layers = kids
        return m.Checkpoint(self.at(keyword), (), unquote(prefix), unquote(layers) if layers else None)

    def layer_set(self, kids: list[Any]) -> s.Name:
        return s.Name(self.at(kids[0]), "-" if kids[0].type == "MINUS" else fold_name(str(kids[0])))

    def constants(self, kids: list[Any]) -> tuple[m.Constant, ...]:
        return tuple(kids)

    def constant(self, kids: list[Any]) -> m.Constant:
        return m.Constant(self.at(kids[0]), fold_name(str(kids[0])), kids[1])

    def shape(self, kids: list[Any]) -> tuple[s.Expr, ...]:
        return kids[0] or ()

    def arg(self, kids: list[Any]) -> m.Arg:
        operand, first, first_dims, plus, wire, dims = kids
        name = None if operand is None else fold_name(str(operand))
        at = self.at(operand if operand is not None else first)
        if plus is None:
            return m.Arg(at, name, None, fold_name(str(first)), first_dims, self.at(first))
        if first_dims is not None:
            help_ = "write the shape after the wire: `state + wire[…]`"
            self.report.error("E104", "a state takes no shape here", self.at(first), help_)
        return m.Arg(at, name, self.name([first]), fold_name(str(wire)), dims, self.at(wire))

    def out(self, kids: list[Any]) -> m.Out:
        return m.Out(self.at(kids[0]), fold_name(str(kids[0])), kids[1])

    def bind(self, kids: list[Any]) -> m.Bind:
        return m.Bind(self.at(kids[0]), fold_name(str(kids[0])), fold_name(str(kids[1])))

    def wire_args(self, kids: list[Any]) -> tuple[m.Arg, ...]:
        return tuple(kids)

    def cut(self, kids: list[Any]) -> m.Cut:
        return m.Cut(kids[0].span, tuple(kids))

    def wire_outs(self, kids: list[Any]) -> tuple[m.Out | m.Cut, ...]:
        return tuple(kids)

    def binds(self, kids: list[Any]) -> tuple[m.Bind, ...]:
        return tuple(kids)

    def apply(self, kids: list[Any]) -> m.Apply:
        label, args, outs, binds = kids
        at = self.at(label) if label is not None else args[0].span
        return m.Apply(at, None if label is None else fold_name(str(label)), args, outs, binds or ())

    def applies(self, kids: list[Any]) -> tuple[m.Apply, ...]:
        return tuple(kids)

    def view_axis(self, kids: list[Any]) -> m.ViewAxis:
        first, high, size = kids
        if high is None:
            return m.ViewAxis(first.span, first, None, None)
        return m.ViewAxis(first.span, size, first, high)

    def view(self, kids: list[Any]) -> tuple[m.ViewAxis, ...]:
        return self.few(kids, MAX_AXES, "axes")

    def piece(self, kids: list[Any]) -> m.Piece:
        return m.Piece(self.at(kids[0]), unquote(kids[0]), kids[1] or (), kids[2])

    def pieces(self, kids: list[Any]) -> tuple[m.Piece, ...]:
        return tuple(kids)

    def tied(self, kids: list[Any]) -> m.Tied:
        node, weight = fold_name(str(kids[0])).rsplit(".", 1)
        return m.Tied(self.at(kids[0]), node, weight)

    def weight(self, kids: list[Any]) -> m.Weight:
        return m.Weight(self.at(kids[0]), fold_name(str(kids[0])), kids[1], kids[2])

    def weights(self, kids: list[Any]) -> tuple[m.Weight, ...]:
        return tuple(kids)

    def row(self, kids: list[Any]) -> m.Row:
        path, op, layers, constants, applies, weights = kids
        return m.Row(
            self.at(path),
            (),
            str(path),
            self.name([op]),
            layers,
            constants or (),
            applies or (),
            weights or (),
        )

    def nodes(self, kids: list[Any]) -> m.Nodes:
        return m.Nodes(self.at(kids[0]), (), tuple(kids[2:]))

    def storage(self, kids: list[Any]) -> m.Storage:
        return m.Storage(self.at(kids[0]), (), str(kids[0]), s.Name(self.at(kids[1]), str(kids[1])))

    def rounding(self, kids: list[Any]) -> m.Round:
        target, role = (s.Name(self.at(k), str(k)) for k in kids)
        return m.Round(target.span, (), target, role)

    def profile(self, kids: list[Any]) -> m.Profile:
        storage = tuple(k for k in kids[1:] if isinstance(k, m.Storage))
        return m.Profile(self.at(kids[0]), (), storage, tuple(k for k in kids[1:] if isinstance(k, m.Round)))

    def listing(self, kids: list[Any]) -> m.ListValue:
        return m.ListValue(self.at(kids[0]), tuple(k for k in kids[1:] if k is not None))

    def choice(self, kids: list[Any]) -> tuple[s.Name, m.Value]:
        return self.name(kids), kids[1]

    def each(self, kids: list[Any]) -> m.Each:
        return m.Each(self.at(kids[0]), tuple(kids[1:]))

    def entry(self, kids: list[Any]) -> m.Entry:
        return m.Entry(self.at(kids[0]), (), str(kids[0]), kids[1])

    def config(self, kids: list[Any]) -> m.Config:
        return m.Config(self.at(kids[0]), (), tuple(kids[1:]))

    def start(self, kids: list[Any]) -> m.SpecFile:
        sections: dict[str, Any] = {}
        uses: list[m.Line] = []
        for item in kids:
            name = section_name(item)
            if name == "uses":
                uses.append(item)
            elif name in sections:
                message = f"a second `{KEYWORDS.get(name, name)}`"
                self.report.error("E105", message, item.span, "each section is written once")
            else:
                sections[name] = item
        missing = ", ".join(f"`{KEYWORDS.get(n, n)}`" for n in REQUIRED if n not in sections)
        if missing:
            self.report.error("E106", f"the spec has no {missing}", Span(self.source, 1, 1))
        if len(uses) > MAX_USES:
            help_ = f"at most {MAX_USES}"
            self.report.error("E108", f"{len(uses)} op libraries", uses[MAX_USES].span, help_)
        self.report.finish()
        fields_: dict[str, Any] = {f.name: sections.get(f.name) for f in fields(m.SpecFile)}
        header = self.comments.header(self.source)
        fields_ |= {"span": Span(self.source, 1, 1), "uses": tuple(uses), "header": header, "trailing": ()}
        tree = with_comments(m.SpecFile(**fields_), self.comments)
        return replace(tree, trailing=self.comments.take(1 << 60))


KEYWORDS = {"official": "class", "states": "state"}
"""Section words that differ from the field's name."""


def section_name(item: s.Node) -> str:
    """The field of `SpecFile` that a section is."""
    match item:
        case m.Line(keyword=keyword) | m.Declarations(_, _, keyword):
            return {"class": "official", "use": "uses", "state": "states"}.get(keyword, keyword)
        case m.ModelLine():
            return "model"
    return type(item).__name__.lower()


def commented(value: Any) -> Iterator[Any]:
    """The nodes in `value` that can carry comments."""
    if isinstance(value, tuple):
        for v in value:
            yield from commented(v)
    elif isinstance(value, s.Node):
        if hasattr(value, "comments"):
            yield value
        for f in fields(value):
            yield from commented(getattr(value, f.name))


def with_comments(tree: m.SpecFile, comments: Comments) -> m.SpecFile:
    """Gives each comment to the item below it, or to the one on its line."""
    places = sorted({(n.span.line, n.span.column) for n in commented(tree)})
    table = {place: comments.take(place[0]) for place in places}

    def attach(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(attach(v) for v in value)
        if not isinstance(value, s.Node):
            return value
        parts = {f.name: attach(getattr(value, f.name)) for f in fields(value) if f.name != "span"}
        if "comments" in parts:
            parts["comments"] = table[value.span.line, value.span.column]
        return replace(value, **parts)

    result = attach(tree)
    assert isinstance(result, m.SpecFile)
    return result


@cache
def _spec_parser() -> tuple[Lark, list[Comments]]:
    holder = [Comments()]
    return parser("spec", lambda token: holder[0].collect(token), LineEnds()), holder


def parse_spec(source: Source) -> m.SpecFile:
    """Parses a Model Spec. Raises SpecError."""
    reader, holder = _spec_parser()
    holder[0] = Comments()
    try:
        result = run_parser(lambda: reader, lambda: SpecBuilder(source, holder[0]), source, RESYNC)
    except SpecError as error:
        raise type(error)(_section_mistake(d) or d for d in error.diagnostics) from None
    assert isinstance(result, m.SpecFile)
    return result


def _section_mistake(found: Diagnostic) -> Diagnostic | None:
    """A clearer message where the line of a syntax error begins with a misspelt or indented section word."""
    if found.code != "E101" or found.span is None:
        return None
    line = found.span.source.line(found.span.line)
    word = re.match(r"\s*(\w*)", line)
    assert word is not None
    name, column = word[1], word.start(1) + 1
    span = Span(found.span.source, found.span.line, column, max(1, len(name)))
    if line[: found.span.column - 1].strip() == "|" and found.help == f"expected {READABLE['_NL']}":
        return _open_row(found.span)
    if column == 1 and name and name not in SECTIONS:
        return Diagnostic("E101", f"unknown section `{name}`", span, nearest(name, SECTIONS))
    if column > 1 and name in SECTIONS and found.span.column > column:
        help_ = "a section word stands at the beginning of its line"
        return Diagnostic("E101", f"unexpected `{name}`", span, help_)
    return None


def _open_row(next_row: Span) -> Diagnostic:
    """The last text above `next_row` lacks the `|` that ends a row."""
    above = next(n for n in range(next_row.line - 1, 0, -1) if next_row.source.line(n).strip())
    end = len(next_row.source.line(above).rstrip())
    return Diagnostic(
        "E101", "this row does not end", Span(next_row.source, above, end + 1), "expected `|` after its last cell"
    )
