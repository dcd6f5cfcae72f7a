"""Text to syntax tree. Spellings are folded here, by table, so that later stages see one form."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

from lark import Lark, Token, Transformer, UnexpectedInput, v_args
from lark.exceptions import VisitError

from specc import syntax as s
from specc.diagnostics import Collector, SpecError
from specc.gauge import Gauge, check_depth
from specc.grammar import parser
from specc.limits import MAX_AXES, MAX_DIGITS, MAX_EXPONENT, MAX_OPERANDS
from specc.recovery import Reader, Resync
from specc.source import Source, Span
from specc.syntax_errors import ops_mistake, syntax_error

GREEK = {
    "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "eps", "ζ": "zeta", "η": "eta", "θ": "theta",
    "ι": "iota", "κ": "kappa", "λ": "lambda_", "μ": "mu", "ν": "nu", "ξ": "xi", "ο": "omicron", "π": "pi", "ρ": "rho",
    "σ": "sigma", "ς": "sigma", "τ": "tau", "υ": "upsilon", "φ": "phi", "χ": "chi", "ψ": "psi", "ω": "omega",
}  # fmt: skip
FOLD = {
    "≤": "<=", "≥": ">=", "≠": "!=", "*": "·", "×": "·", "−": "-", "Sum": "Σ", "Prod": "Π",
}  # fmt: skip
SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")


def fold(spelling: str) -> str:
    return FOLD.get(spelling, spelling)


def fold_name(name: str) -> str:
    """An identifier in ASCII: Greek letters are spelt out; `σ` alone is the function `sigmoid`, `pi` is `π`."""
    if name == "σ":
        return "sigmoid"
    if name in ("pi", "π"):
        return "π"
    return "".join(GREEK.get(c, c) for c in name)


class Comments:
    """Comment lines of a file, handed out to the item that follows them."""

    def __init__(self) -> None:
        self.lines: list[tuple[int, str]] = []
        self.taken = 0

    def collect(self, token: Token) -> Token:
        self.lines.append((token.line or 0, str(token).lstrip("#").strip()))
        return token

    def take(self, before: int) -> tuple[str, ...]:
        """The texts of all pending comments that stand above line `before` or on it."""
        start = self.taken
        while self.taken < len(self.lines) and self.lines[self.taken][0] <= before:
            self.taken += 1
        return tuple(text for _, text in self.lines[start : self.taken])

    def header(self, source: Source) -> tuple[str, ...]:
        """The comment lines at the top of the file, where a blank line parts them from what follows."""
        lines = [line.strip() for line in source.text.split("\n")]
        start = next((i for i, line in enumerate(lines) if line), 0)
        end = next((i for i in range(start, len(lines)) if not lines[i].startswith("#")), len(lines))
        alone = end < len(lines) and not lines[end] and any(lines[end:])
        return self.take(end) if alone else ()


@v_args(meta=False)
class ExprBuilder(Transformer[Token, Any]):
    """Builds expressions. Subclasses add the rules of their file kind."""

    def __init__(self, source: Source) -> None:
        super().__init__()
        self.source = source
        self.report = Collector()

    def at(self, first: Any) -> Span:
        """The place of a token or an already built node."""
        if isinstance(first, Token):
            return Span(self.source, first.line or 1, first.column or 1, len(first))
        if isinstance(first, s.Node):
            return first.span
        return Span(self.source, 1, 1)

    def number(self, kids: list[Any]) -> s.Number:
        text = str(kids[0])
        exponent = re.split("[eE]", text)[1] if re.search("[eE]", text) else "0"
        if len(text) > MAX_DIGITS or abs(int(exponent)) > MAX_EXPONENT:
            help_ = f"at most {MAX_DIGITS} digits and a decimal exponent of at most {MAX_EXPONENT}"
            self.report.error("E103", "number out of range", self.at(kids[0]), help_)
            return s.Number(self.at(kids[0]), Fraction(0), "0")
        return s.Number(self.at(kids[0]), Fraction(text), text)

    def name(self, kids: list[Any]) -> s.Name:
        return s.Name(self.at(kids[0]), fold_name(str(kids[0])))

    def dots(self, kids: list[Any]) -> s.Dots:
        return s.Dots(self.at(kids[0]))

    def few(self, kids: list[Any], most: int, what: str) -> tuple[Any, ...]:
        """All of `kids`, of which a text may have at most `most`."""
        if len(kids) > most:
            self.report.error("E108", f"{len(kids)} {what}", self.at(kids[most]), f"at most {most}")
        return tuple(kids)

    def indices(self, kids: list[Any]) -> tuple[s.Expr, ...]:
        return self.few(kids, MAX_AXES, "axes")

    def args(self, kids: list[Any]) -> tuple[s.Expr, ...]:
        return tuple(kids)

    def index(self, kids: list[Any]) -> s.Index:
        return s.Index(self.at(kids[0]), fold_name(str(kids[0])), kids[1] or ())

    def call(self, kids: list[Any]) -> s.Call:
        return s.Call(self.at(kids[0]), fold_name(str(kids[0])), kids[1] or ())

    def sqrt(self, kids: list[Any]) -> s.Call:
        return s.Call(self.at(kids[0]), "sqrt", (kids[1],))

    def superscript(self, kids: list[Any]) -> s.Binary:
        digits = str(kids[1]).translate(SUPERSCRIPTS)
        exponent = self.number([Token.new_borrow_pos("NUMBER", digits, kids[1])])
        return s.Binary(self.at(kids[0]), "^", kids[0], exponent)

    def power(self, kids: list[Any]) -> s.Binary:
        return s.Binary(self.at(kids[0]), "^", kids[0], kids[-1])

    def unary(self, kids: list[Any]) -> s.Unary:
        return s.Unary(self.at(kids[0]), "-", kids[1])

    def binary(self, kids: list[Any]) -> s.Binary:
        return s.Binary(self.at(kids[0]), fold(str(kids[1])), kids[0], kids[2])

    def chain(self, kids: list[Any]) -> s.Chain:
        return s.Chain(self.at(kids[0]), tuple(fold(str(k)) for k in kids[1::2]), tuple(kids[0::2]))

    def or_(self, kids: list[Any]) -> s.Binary:
        return s.Binary(self.at(kids[0]), "or", kids[0], kids[1])

    def and_(self, kids: list[Any]) -> s.Binary:
        return s.Binary(self.at(kids[0]), "and", kids[0], kids[1])

    def not_(self, kids: list[Any]) -> s.Unary:
        return s.Unary(self.at(kids[0]), "not", kids[0])

    def if_(self, kids: list[Any]) -> s.If:
        return s.If(self.at(kids[0]), kids[0], kids[1], kids[2])

    def big(self, kids: list[Any]) -> s.Big:
        op, var = str(kids[0]).split("_", 1)
        return s.Big(self.at(kids[0]), fold(op), self.index_name(var, kids[0]), None, None, kids[1])

    def index_name(self, var: str, token: Token) -> str:
        """The name of an index that `token` binds. `π` is a number: `Σ_π` would be no word."""
        if fold_name(var) == "π":
            self.report.error("E104", f"`{var}` is a number, no index", self.at(token), "choose another name")
        return fold_name(var)

    def big_range(self, kids: list[Any]) -> s.Big:
        token, var, compare, bound, predicate, body = kids
        if compare is not None and str(compare) != "<":
            self.report.error("E104", f"a range is written `{var} < n`", self.at(compare))
        return s.Big(self.at(token), fold(str(token)[:-2]), self.index_name(str(var), var), bound, predicate, body)

    def softmax(self, kids: list[Any]) -> s.Softmax:
        var = self.index_name(str(kids[0]).split("_", 1)[1], kids[0])
        return s.Softmax(self.at(kids[0]), var, kids[1], kids[2])


class OpsBuilder(ExprBuilder):
    """Builds an op library."""

    def __init__(self, source: Source, comments: Comments) -> None:
        super().__init__(source)
        self.comments = comments

    def tensors(self, kids: list[Any]) -> tuple[s.Tensor, ...]:
        return self.few(kids, MAX_OPERANDS, "operands")

    def tensor(self, kids: list[Any]) -> s.Tensor:
        name, dims, index, optional = kids
        return s.Tensor(self.at(name), fold_name(str(name)), dims or (), index is not None, optional is not None)

    def params(self, kids: list[Any]) -> tuple[s.Param, ...]:
        return self.few(kids, MAX_OPERANDS, "constants")

    def param(self, kids: list[Any]) -> s.Param:
        name, kind, optional, default = kids
        return s.Param(self.at(name), fold_name(str(name)), str(kind or "real"), default, optional is not None)

    def names(self, kids: list[Any]) -> tuple[str, ...]:
        return tuple(fold_name(str(k)) for k in kids)

    def rec_indices(self, kids: list[Any]) -> tuple[tuple[str, s.Expr], ...]:
        return tuple(kids)

    def rec_index(self, kids: list[Any]) -> tuple[str, s.Expr]:
        return fold_name(str(kids[0])), kids[2]

    def def_(self, kids: list[Any]) -> s.Def:
        name, params, body, computed = kids
        return s.Def(self.at(name), (), fold_name(str(name)), params or (), body, computed)

    def op(self, kids: list[Any]) -> s.Op:
        name, inputs, params, outputs, *body = kids
        return s.Op(self.at(name), (), fold_name(str(name)), inputs, params or (), outputs, tuple(body))

    def let(self, kids: list[Any]) -> s.Let:
        return s.Let(self.at(kids[0]), (), fold_name(str(kids[0])), kids[1] or (), kids[2])

    def rec(self, kids: list[Any]) -> s.Rec:
        return s.Rec(self.at(kids[0]), (), fold_name(str(kids[0])), *kids[1:])

    def require(self, kids: list[Any]) -> s.Require:
        return s.Require(self.at(kids[0]), (), kids[0])

    def prefill(self, kids: list[Any]) -> s.Prefill:
        return s.Prefill(self.at(kids[0]), (), fold_name(str(kids[0])))

    def equation(self, kids: list[Any]) -> s.Equation:
        return s.Equation(self.at(kids[0]), (), fold_name(str(kids[0])), kids[1] or (), kids[2])

    def start(self, kids: list[Any]) -> s.OpsFile:
        header = self.comments.header(self.source)
        items = tuple(_with_comments(item, self.comments) for item in kids)
        return s.OpsFile(Span(self.source, 1, 1), items, header, self.comments.take(1 << 60))


def _with_comments(item: Any, comments: Comments) -> Any:
    from dataclasses import replace

    above = comments.take(item.span.line)
    if isinstance(item, s.Op):
        body = tuple(replace(b, comments=comments.take(b.span.line)) for b in item.body)
        return replace(item, comments=above, body=body)
    return replace(item, comments=above)


def run_parser(make: Callable[[], Lark], build: Callable[[], ExprBuilder], source: Source, resync: Resync) -> Any:
    """Parses and builds. Raises SpecError with all syntax errors, else with all that building finds."""
    text = source.text if source.text.endswith("\n") else source.text + "\n"
    report = Collector()
    gauge = Gauge(source, report, lambda name: len(fold_name(name)))
    tree = Reader(make(), text, resync, lambda error: _note(error, source, report), gauge).tree()
    report.finish()
    assert tree is not None
    check_depth(tree, source)
    builder = build()
    try:
        built = builder.transform(tree)
    except VisitError as error:
        if not isinstance(error.orig_exc, SpecError):
            raise
        builder.report.take(error.orig_exc)
    builder.report.finish()
    return built


def _note(error: UnexpectedInput, source: Source, report: Collector) -> None:
    found = syntax_error(error, source)
    report.error(found.code, found.message, found.span, found.help)


RESYNC = Resync(re.compile(r"^(def|op)\b", re.MULTILINE), starts=("DEF", "OP"), by_line=False)
"""An item begins with its word at the beginning of a line."""


@cache
def _ops_parser() -> tuple[Lark, list[Comments]]:
    holder = [Comments()]
    return parser("ops", lambda token: holder[0].collect(token)), holder


def parse_ops(source: Source) -> s.OpsFile:
    """Parses an op library. Raises SpecError."""
    reader, holder = _ops_parser()
    holder[0] = Comments()
    try:
        result = run_parser(lambda: reader, lambda: OpsBuilder(source, holder[0]), source, RESYNC)
    except SpecError as error:
        raise type(error)(ops_mistake(d) or d for d in error.diagnostics) from None
    assert isinstance(result, s.OpsFile)
    return result
