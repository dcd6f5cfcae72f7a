"""A small spec and library, every place in them where a user writes a text or a name, and what is written there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

EXAMPLES = Path(__file__).parent.parent.parent / "docs" / "examples"

TINY = (EXAMPLES / "tiny.spec").read_text(encoding="utf-8")
OWN = (EXAMPLES / "own.ops").read_text(encoding="utf-8")
CLASSES = '  even "even ones" where i % 2 == 0: window = 8\n  odd "odd ones" where i % 2 == 1: window = 16\n'
CONFIG = '\nconfig\n  text.kind = "some kind"\n'
SPEC = TINY.replace("layers 3\n", f"layers 3\n{CLASSES}") + CONFIG


@dataclass(frozen=True)
class Place:
    """`name` of the place; `old` stands there, in the library where `library` says so, everywhere or once."""

    name: str
    old: str
    new: Callable[[str], str]
    library: bool = False
    everywhere: bool = False

    def fill(self, payload: str, spec: str = SPEC, ops: str = OWN) -> tuple[str, str]:
        """Spec and library with `payload` at the place."""
        text = ops if self.library else spec
        assert self.old in text, self.name
        changed = text.replace(self.old, self.new(payload), -1 if self.everywhere else 1)
        if self.everywhere and not self.library:
            ops = ops.replace(self.old, self.new(payload))
        return (spec, changed) if self.library else (changed, ops)


def quoted(text: str) -> str:
    """As a spec quotes it."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def within(before: str, after: str, raw: bool = False) -> Callable[[str], str]:
    return lambda payload: before + (payload if raw else quoted(payload)) + after


TEXTS = (
    Place("about", 'about "One attention head size, a squared-ReLU unit, LayerNorm."', within("about ", "")),
    Place("unit", '"sequences"', within("", "")),
    Place("label", '"even ones"', within("", "")),
    Place("checkpoint", 'checkpoint "model."', within("checkpoint ", "")),
    Place("tensor of a checkpoint", '"qkv.weight"', within("", "")),
    Place("value of the configuration", '"some kind"', within("", "")),
    Place(
        "comment of a spec", "# A small decoder with two ops of its own, defined in own.ops.", within("# ", "", True)
    ),
    Place("comment of an op", "# A gated unit whose gate is a squared ReLU.", within("# ", "", True), library=True),
    Place("comment in an op", "  y[.., i] = relu", within("  # ", "\n  y[.., i] = relu", True), library=True),
)
"""Where prose and quoted texts stand."""


def bare(name: str, old: str, new: str, **more: bool) -> Place:
    """`{}` in `new` is the payload."""
    before, after = new.split("{}")
    return Place(name, old, within(before, after, True), **more)


NAMES = (
    bare("model key", "model example/tiny", "model example/{}"),
    bare("owner of the model", "model example/tiny", "model {}/tiny"),
    bare("version", "@ 1.0", "@ {}"),
    bare("official class", "class example.Tiny", "class example.{}"),
    bare("size", "inter", "{}", everywhere=True),
    bare("run-time size", "  S in [1, 4096]", "  {} in [1, 4096]"),
    bare("layer class", "  even ", "  {} "),
    bare("input", "  pos[T]: index", "  {}[T]: index"),
    bare("stream", "stream h[T, hidden]", "stream {}[T, hidden]"),
    bare("state", "k_cache", "{}", everywhere=True),
    bare("node", "| norm1 ", "| {} "),
    bare("part of a node", "| mlp.act ", "| mlp.{} "),
    bare("module of nodes", "| mlp.", "| {}.", everywhere=True),
    bare("op", "relu2Mul", "{}", everywhere=True),
    bare("wire", "h1", "{}", everywhere=True),
    bare("weight", 'w[H] = "norm1', '{}[H] = "norm1'),
    bare("constant", "eps=1e-5", "{}=1e-5", everywhere=True),
    bare("label of an op", "act: label = relu2", "act: label = {}", library=True),
    bare("operand", "gu[", "{}[", library=True, everywhere=True),
    bare("function", "relu(", "{}(", library=True, everywhere=True),
    bare("index", "i]", "{}]", library=True, everywhere=True),
    bare("let", "let m = Σ_j x[.., j] / H", "let {} = Σ_j x[.., j] / H", library=True),
    bare("key of the configuration", "text.kind", "text.{}"),
    bare("rounding", "  accumulator float32", "  accumulator {}"),
)  # fmt: skip
"""Where names stand."""

MARKUP = (
    "{{ 7*7 }}", "{% raw %}", "{% for x in y %}", "{# a #}", "{0.__class__}", "%s %(x)s", "${HOME}", "`id`", "``` ",
    "a ` b | c <script>alert(1)</script>", "| x | y |", "a \\| b", "<img src=x onerror=alert(1)>", "# heading",
    "1. item", "[a](javascript:alert(1))", "&lt;script&gt;", "*/", "//",
    "/* a", "'", "'''", '"""', '""" + str(1) + """',
    '"""\\',
    "\\\\", "a\\", '\\"', "\\N{BULLET}", "\\x41\\n", "a'; import os; '", "../../etc/passwd", "C:\\x", "--help", "",
)  # fmt: skip
"""What a text may hold, and must stay a text."""

HIDDEN = {
    "NULL": "a\0b", "ESCAPE": "a\x1b[31mb", "CARRIAGE RETURN": "a\rb", "LINE SEPARATOR": "a\u2028b",
    "RIGHT-TO-LEFT OVERRIDE": "a\u202eb", "LEFT-TO-RIGHT ISOLATE": "a\u2066b", "ARABIC LETTER MARK": "a\u061cb",
    "ZERO WIDTH SPACE": "a\u200bb", "ZERO WIDTH JOINER": "a\u200db", "ZERO WIDTH NO-BREAK SPACE": "a\ufeffb",
    "SOFT HYPHEN": "a\u00adb", "U+0085": "a\x85b", "U+009B": "a\x9bb", "NO-BREAK SPACE": "a\u00a0b",
    "HANGUL FILLER": "a\u3164b", "VARIATION SELECTOR-16": "a\ufe0fb", "U+E01B": "a\ue01bb", "U+FFFE": "a\ufffeb",
    "TAG LATIN SMALL LETTER A": "a\U000e0061b", "DELETE": "a\x7fb", "CYRILLIC SMALL LETTER A": "p\u0430y",
    "ARMENIAN SMALL LETTER OH": "l\u0585g", "FULLWIDTH LATIN SMALL LETTER A": "x\uff41", "KELVIN SIGN": "\u212a",
    "LATIN SMALL LETTER E": "e\u0301",
}  # fmt: skip
"""What no text may hold, by a word of the message that names it."""

NO_NAMES = (
    "{{ 7*7 }}", "{% raw %}", "`id`", "a|b", "<script>", "#", "*/", '"', '"""', "'", "\\", "a\\", "a; import os",
    "a\nb", "../x", "/x", "..", "a\0b", "a\x1bb", "a\u202eb", "a\u200bb", "a\u2028b", "x\uff41", "", "a b", "1",
)  # fmt: skip
"""What is no name."""

LOOKALIKE_NAMES = ("ﬁ", "K", "а", "ｘ", "𝐱", "ℓ", "é", "ñame", "名", "x̂", "ϵ", "µ")
"""Letters that no name may have: Python would take some for others."""

WORDS = (
    "lambda", "None", "tl", "torch", "self", "template", "int", "__class__", "print", "p", "float", "ο", "xπ",
)  # fmt: skip
"""Names that mean something in Python, Triton or C++, and Greek ones that look like Latin ones."""
