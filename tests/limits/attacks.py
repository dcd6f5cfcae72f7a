"""Inputs that are far too large, and the code of the message that answers each."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.typecheck.mini import MINI

ADD = '| add    | residual         | all    | H=hidden, r=0.5, layer_scalar=True    | h, a -> h1 | s[1] = "scale" |'
OUT = '| out    | rmsnorm          | -      | H=hidden, eps=1e-6                    | h -> hn | w[H] = "norm" |'
BUILD = ("build", "x.spec", "--out", "out")


@dataclass(frozen=True)
class Attack:
    """Files by name, a command, and a code that its message has; no code where it is to succeed."""

    name: str
    code: str
    files: dict[str, str | bytes] = field(repr=False)
    command: tuple[str, ...] = BUILD


def spec(*edits: tuple[str, str]) -> str:
    """The small spec of the tests after edits."""
    text = MINI
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new, 1)
    return text


def edited(name: str, code: str, *edits: tuple[str, str]) -> Attack:
    return Attack(name, code, {"x.spec": spec(*edits)})


def library(name: str, code: str, text: str, row: str = "") -> Attack:
    """A spec that uses an op library; with a `row`, in place of `out`."""
    edits = [('about "A toy."', 'use "own.ops"')] + ([(OUT, row)] if row else [])
    return Attack(name, code, {"x.spec": spec(*edits), "own.ops": text})


def size(value: str) -> tuple[str, str]:
    return "  vocab = 11", f"  vocab = 11\n  n = {value}"


def lines(form: str, count: int) -> str:
    return "".join(form.replace("%", str(n)) + "\n" for n in range(count))


def misspelt(count: int, name: str, wrong: str) -> tuple[str, str]:
    """Sizes of names that are like the unknown ones of a hundred others."""
    return "  vocab = 11\n", f"  vocab = 11\n{lines(f'  {name} = 1', count)}{lines(f'  b% = {wrong}', 100)}"


F = "op f(x[.., H], w[H]; H: nat, eps: real) -> y[.., H]\n"
ROW = OUT.replace("rmsnorm", "f")
TWICE = "def f0(x) = x + x\n" + "".join(f"def f{n}(x) = f{n - 1}(f{n - 1}(x))\n" for n in range(1, 60))
ADDED = "def f0(x) = x + 1\n" + "".join(f"def f{n}(x) = f{n - 1}(x) + f{n - 1}(x)\n" for n in range(1, 60))
INDEX = "def g0(i: nat) = i + 1\n" + "".join(f"def g{n}(i: nat) = g{n - 1}(i) + g{n - 1}(i)\n" for n in range(1, 60))
LETS = "".join(f"  let a{n}[i] = a{n - 1}[i] + a{n - 1}[i]\n" for n in range(1, 60))
LARGE = "·".join(["1e12"] * 90)
CHAIN = "".join(f"  let a{n}[i] = a{n - 1}[i] + 1\n" for n in range(1, 900))
A0 = "  let a0[i] = x[.., i] · w[i] · eps\n"


TEXTS = [
    Attack("ten megabytes", "E108", {"x.spec": "#" + "a" * 10_000_000}),
    Attack("a long library", "E108", {"x.spec": spec(('about "A toy."', 'use "own.ops"')), "own.ops": "#" * 2_000_000}),
    Attack("a line of five megabytes", "E108", {"x.spec": spec(('"A toy."', '"' + "a" * 5_000_000 + '"'))}),
    edited("a long line", "E108", ('"A toy."', '"' + "a" * 200_000 + '"')),
    edited("a long line with a fault", "E101", ('"A toy."', '"' + "a" * 200_000 + '" b')),
    Attack("a quote without an end", "E101", {"x.spec": spec(('"A toy."', '"' + "a" * 200_000))}),
    edited("a long name", "E108", ("  vocab = 11", "  vocab = 11\n  " + "n" * 100_000 + " = 1")),
    edited("a long Greek name", "E108", ("  vocab = 11", "  vocab = 11\n  " + "ε" * 50_000 + " = 1")),
    edited("a long unknown section", "E101", ('about "A toy."', "a" * 100_000)),
    edited("signs", "E101", ('about "A toy."', "%" * 200_000)),
    edited("lines of signs", "E101", ('about "A toy."', "  %\n" * 60_000)),
    edited("faults in every line", "E101", ("  vocab = 11\n", lines("  a% = = 1", 12_000))),
    edited("words", "E108", ("  vocab = 11\n", lines("  a% = 1", 20_000))),
    edited("rules", "E101", ("nodes\n", "nodes\n" + "|" + "--|" * 60_000 + "x\n")),
    edited("rules of blanks", "E101", ("nodes\n", "nodes\n" + "| " + " " * 100_000 + "--" + " " * 100_000 + "x\n")),
    edited("nothing but line ends", "E106", (MINI, "\n" * 250_000)),
    edited("nothing but bars", "E101", (MINI, "|" * 250_000)),
    edited("comments", "E106", (MINI, "#\n" * 125_000)),
    Attack("no text", "E501", {"x.spec": bytes(range(256)) * 100}),
    Attack("zeros", "E111", {"x.spec": "\0" * 100_000}),
    *(
        edited(f"{count} {what}", "E107", size(text))
        for count, what, text in (
            (10_000, "brackets", "(" * 10_000 + "1" + ")" * 10_000),
            (10_000, "roots", "√(" * 10_000 + "1" + ")" * 10_000),
            (10_000, "indices", "a[" * 9_000 + "1" + "]" * 9_000),
            (9_000, "signs", "-" * 9_000 + "1"),
            (900, "terms", "+".join(["1"] * 900)),
            (900, "powers", "^".join(["1"] * 900)),
            (900, "conditions", "if 1 < 2 then " * 900 + "1" + " else 1" * 900),
            (900, "functions", "abs(" * 900 + "1" + ")" * 900),
            (900, "negations", "if " + "not " * 900 + "1 < 2 then 1 else 2"),
        )
    ),
    edited("lists", "E107", ("  eps = 1e-6", "  eps = " + "[" * 9_000 + "]" * 9_000)),
    edited("choices", "E107", ("  eps = 1e-6", "  eps = " + "each(all: " * 900 + "1" + ")" * 900)),
    edited("sections", "E105", ("config\n", "config\n" * 4_000)),
    edited("one section", "E108", ("config\n", "config\n" + lines("  a% = 1", 10_000))),
    edited("an exponent", "E103", size("1e99999999")),
    edited("a small exponent", "E103", size("1e-99999999")),
    edited("digits", "E103", size("9" * 200_000)),
    edited("digits of a fraction", "E103", size("0." + "9" * 200_000)),
    Attack("a million digits", "E108", {"x.spec": spec(size("9" * 1_000_000))}),
    edited("digits of an exponent", "E103", size("1e" + "9" * 200_000)),
    edited("digits on high", "E108", size("2" + "⁹" * 80_000)),
    edited("a version", "E108", ("1.0", "1" + ".0" * 50_000)),
    edited("a model key", "E108", ("toy/mini", "toy/" + "m" * 50_000)),
]

MODELS = [
    edited("layers", "E210", ("layers 4", "layers 10^9")),
    edited("layers in digits", "E206", ("layers 4", "layers " + "9" * 300)),
    edited("powers of powers", "E203", size("9^9^9^9^9^9")),
    edited("products of powers", "E206", size("(2^4000) · (2^90)")),
    edited("a size too large", "E206", size("2^41")),
    edited("a dimension too large", "E206", ('w[H] = "norm"', 'w[2^4000] = "norm"')),
    edited("a range too large", "E206", ("T in [1, 64]", "T in [1, 2^4000]")),
    edited("a number of the configuration", "E271", ("  eps = 1e-6\n", "  eps = 10^390 + 1/3\n")),
    edited(
        "sizes of sizes",
        "E107",
        (
            "  vocab = 11\n",
            "  vocab = 11\n"
            + lines("  a% = a%0 + 1", 1).replace("a00", "a1")
            + "".join(f"  a{n} = a{n + 1} + 1\n" for n in range(1, 2000))
            + "  a2000 = 1\n",
        ),
    ),
    edited(
        "sizes by themselves",
        "E107",
        (
            "  vocab = 11\n",
            "  vocab = 11\n" + "".join(f"  a{n} = a{n + 1} + 1\n" for n in range(1, 2000)) + "  a2000 = a1\n",
        ),
    ),
    edited(
        "doubled sizes",
        "E206",
        (
            "  vocab = 11\n",
            "  vocab = 11\n  b0 = 1\n" + "".join(f"  b{n} = b{n - 1} + b{n - 1}\n" for n in range(1, 60)),
        ),
    ),
    edited("layer classes", "E211", ("  full where", lines("  c% where i == %", 2000) + "  full where")),
    edited(
        "layer classes that overlap",
        "E210",
        ("layers 4\n", "layers 500\n"),
        ("  full where", "".join(f"  c{n} where i // {n + 2} % 2 == 1\n" for n in range(40)) + "  full where"),
    ),
    edited(
        "layer classes of many layers",
        "E210",
        ("layers 4\n", "layers 10000\n"),
        ("  full where", lines("  c% where i >= 0", 900) + "  full where"),
    ),
    edited(
        "a huge predicate",
        "E210",
        ("layers 4\n", "layers 10000\n"),
        ("i % 2 == 1", "(" + " and ".join(["(" + " and ".join(["i % 2 == 1"] * 30) + ")"] * 30) + ")"),
    ),
    edited(
        "rows",
        "E210",
        (OUT, OUT + "\n" + lines('  | n% | rmsnorm | all | H=hidden, eps=1e-6 | h -> x% | w[H] = "n%" |', 600)),
    ),
    edited("bars", "E108", (OUT, OUT + "\n" + "  | a | b | - | | | |\n" * 12_000)),
    edited(
        "rows and groups",
        "E210",
        ("layers 4\n", "layers 128\n"),
        ("  full where", lines("  c% where i == %", 60) + "  full where"),
        (OUT, OUT + "\n" + lines('  | n% | rmsnorm | all | H=hidden, eps=1e-6 | h -> x% | w[H] = "n%" |', 200)),
    ),
    edited("unknown names", "E201", ("  vocab = 11\n", "  vocab = 11\n" + lines("  a% = b% + c%", 3000))),
    edited("long names that are alike", "E201", misspelt(200, "a" * 90 + "%", "a" * 85 + "%x")),
    edited("long names that begin and end alike", "E201", misspelt(900, "ab" * 23 + "%" + "ba" * 22, "ba" * 40 + "%x")),
    edited("unknown ops", "E230", (OUT, OUT + "\n" + lines("  | n% | rmsnorn% | all | | h -> x% | |", 300))),
    edited(
        "unknown wires",
        "E250",
        (
            OUT,
            OUT + "\n" + lines("  | n% | residual | all | H=hidden, r=1, layer_scalar=False | ha%, hb% -> x% | |", 300),
        ),
    ),
    edited("libraries", "E108", ('about "A toy."', lines('use "o%.ops"', 5_000))),
    edited("inputs", "E108", ("  pos[T]: index\n", "  pos[T]: index\n" + lines("  p%[T]: index", 20_000))),
    edited("unread inputs", "E253", ("  pos[T]: index\n", "  pos[T]: index\n" + lines("  p%[T]: index", 2_000))),
    edited("axes", "E108", ("  pos[T]: index\n", "  pos[" + "T, " * 3_000 + "T]: index\n")),
    edited("axes of a wire", "E108", ("tokens -> h0", "tokens -> h0[" + "T, " * 300 + "hidden]")),
    edited("uses of an op", "E254", ("h -> hn", "; ".join(f"l{n}: h -> hn" for n in range(2000)))),
    edited("pieces", "E260", ('w[H] = "norm"', "w[H] = " + " ++ ".join(f'"p{n}"[1]' for n in range(3000)))),
    edited("pieces of one tensor", "E260", ('w[H] = "norm"', "w[H] = " + " ++ ".join(['"p"[1]'] * 3000))),
    edited(
        "runs of rows",
        "E261",
        ("vocab = 11", "vocab = 2^22"),
        ('w[vocab, hidden] = "embed"', 'w[vocab, hidden] = "embed"[2^21, 0 : 1 of 2] ++ "embed"[2^21, 1 : 2 of 2]'),
    ),
    edited(
        "runs of many tensors",
        "E261",
        ("output logits", "output logits, " + ", ".join(f"n{n}" for n in range(100))),
        (
            OUT,
            OUT
            + "\n"
            + lines(
                '  | n% | linear | - | K=hidden, N=2^16 | h0 -> n% | w[N, K] = "a%"[2^15, 0 : 1 of 2]'
                ' ++ "a%"[2^15, 1 : 2 of 2] |',
                100,
            ),
        ),
    ),
    edited("axes of a view", "E108", ('w[H] = "norm"', 'w[H] = "norm"[' + ", ".join(["0 : 1 of 1"] * 900) + "]")),
    edited(
        "values of the configuration",
        "E271",
        ("layers 4", "layers 10000"),
        ("  eps = 1e-6\n", "  eps = [" + ", ".join(["each(all: 1)"] * 1500) + "]\n"),
    ),
    edited(
        "a nested configuration",
        "E271",
        ("layers 4", "layers 10000"),
        ("  eps = 1e-6\n", "  eps = each(all: each(all: each(all: 1)))\n"),
    ),
    edited("a deep configuration", "E108", ("  eps = 1e-6\n", "  " + ".".join(["a"] * 2000) + " = 1\n")),
    edited("entries of the configuration", "E204", ("  eps = 1e-6\n", lines("  a% = 1", 3000) + "  a7 = 1\n")),
    edited("roundings", "E270", ("  round softmax", lines("  round o%.mul to weight", 2000) + "  round softmax")),
    edited("outputs", "E250", ("output logits", "output " + ", ".join(f"o{n}" for n in range(4000)))),
    edited(
        "a chain of rows",
        "E252",
        (
            OUT,
            OUT
            + "\n"
            + "".join(
                f"  | n{n} | residual | - | H=hidden, r=1, layer_scalar=False | x{n + 1}, x{n + 1} -> x{n} | |\n"
                for n in range(350)
            )
            + "  | n350 | residual | - | H=hidden, r=1, layer_scalar=False | x0, x0 -> x350 | |\n",
        ),
    ),
]

LIBRARIES = [
    library("functions of functions", "E323", TWICE + "\n" + F + "  y[.., i] = f59(x[.., i]) · w[i] · eps\n", ROW),
    library("sums of functions", "E323", ADDED + "\n" + F + "  y[.., i] = f59(x[.., i]) · w[i] · eps\n", ROW),
    library("functions of an index", "E323", INDEX + "\n" + F + "  y[.., i] = x[.., i] · w[g59(i) % H] · eps\n", ROW),
    library("two forms of a function", "E323", ADDED + "def g(x) = f59(x)\n  computed as f58(x)\n"),
    library("parameters", "E108", "def g(" + ", ".join(f"p{n}" for n in range(2000)) + ") = p0\n  computed as p0\n"),
    library("lets of lets", "E323", F + A0 + LETS + "  y[.., i] = a59[i]\n", ROW),
    library("a chain of lets", "E107", F + A0 + CHAIN + "  y[.., i] = a899[i]\n", ROW),
    library(
        "a chain of functions",
        "E107",
        "def f0(x) = x + 1\n"
        + "".join(f"def f{n}(x) = f{n - 1}(x) + 1\n" for n in range(1, 900))
        + F
        + "  y[.., i] = f899(x[.., i]) · w[i] · eps\n",
        ROW,
    ),
    library(
        "functions by themselves",
        "E107",
        "def f0(x) = f899(x) + 1\n" + "".join(f"def f{n}(x) = f{n - 1}(x) + 1\n" for n in range(1, 900)),
    ),
    library(
        "a function with a huge argument",
        "E323",
        "def g(x) = x·x·x·x·x·x·x·x·x·x\n" + F + "  y[.., i] = " + "g(" * 20 + "x[.., i]·w[i]·eps" + ")" * 20 + "\n",
        ROW,
    ),
    library(
        "powers of powers in a formula",
        "E323",
        F + "  y[.., i] = " + "(" * 30 + "x[.., i]·w[i]·eps" + "^64)" * 30 + "\n",
        ROW,
    ),
    library(
        "powers of numbers", "E323", F + "  y[.., i] = x[.., i]·w[i]·eps·" + "(" * 30 + "3" + "^64)" * 30 + "\n", ROW
    ),
    library(
        "powers of indices", "E323", F + "  y[.., i] = x[.., i]·eps·w[" + "(" * 30 + "3" + "^64)" * 30 + " % H]\n", ROW
    ),
    library(
        "sums in sums",
        "E401",
        F
        + "  y[.., i] = "
        + "".join(f"Σ_{{j{n} < 16}} " for n in range(12))
        + "x[.., (i + "
        + " + ".join(f"j{n}" for n in range(12))
        + ") % H] · w[i] · eps\n",
        ROW,
    ),
    library(
        "a wide formula",
        "E323",
        F + "  y[.., i] = x[.., i]·w[i]·eps·" + "·".join(["(" + "+".join(["x[.., i]"] * 60) + ")"] * 40) + "\n",
        ROW,
    ),
    library("terms", "E107", F + "  y[.., i] = " + "+".join(["x[.., i]"] * 900) + "\n", ROW),
    library(
        "operands", "E108", "op f(" + ", ".join(f"x{n}[H]" for n in range(3000)) + "; H: nat) -> y[H]\n  y[i] = x0[i]\n"
    ),
    library(
        "axes of an operand", "E108", "op f(x[" + ", ".join(f"A{n}" for n in range(200)) + "]) -> y[A0]\n  y[i] = 1\n"
    ),
    library("op after op", "E108", "".join(f"op f{n}(x[H]; H: nat) -> y[H]\n  y[i] = x[i]\n" for n in range(3000))),
    library(
        "ops with lets",
        "E323",
        "".join(
            f"op f{n}(x[H]; H: nat) -> y[H]\n  let a[i] = x[i]·x[i]·x[i]·x[i]·x[i]·x[i]\n"
            "  let b[i] = a[i]+a[i]+a[i]+a[i]+a[i]+a[i]\n  y[i] = b[i]+b[i]+b[i]+b[i]+b[i]\n"
            for n in range(150)
        ),
    ),
    library(
        "unknown names in a library",
        "E301",
        "".join(f"op f{n}(x[H]; H: nat) -> y[H]\n  y[i] = x[i] + abc{n} + bcd{n}\n" for n in range(500)),
    ),
    library("a number of a formula", "E103", F + "  y[.., i] = x[.., i]·w[i]·eps·1e400·1e400\n", ROW),
    library("two numbers that overflow", "E203", F + "  y[.., i] = x[.., i]·w[i]·eps·(1e250·1e250)\n", ROW),
    library("an index to a power", "E310", F + "  y[.., i] = x[.., i]·eps·w[9^9^9 % H]\n", ROW),
    library("indices that overflow", "E310", F + "  y[.., i] = x[.., i]·eps·w[1e250·1e250 % H]\n", ROW),
    library("a product of integers", "E203", F + "  y[.., i] = w[i]·x[.., i]·eps + " + LARGE + "\n", ROW),
    library("an index by a product", "E203", F + "  y[.., i] = x[.., i]·eps·w[i % (" + LARGE + ")]\n", ROW),
    library("numbers that overflow", "", F + "  y[.., i] = x[.., i]·w[i]·eps·" + "·".join(["1e250"] * 9) + "\n", ROW),
    library("numbers that vanish", "", F + "  y[.., i] = x[.., i]·w[i]·eps·" + "·".join(["1e-250"] * 9) + "\n", ROW),
    edited("a constant that overflows", "E203", ("r=0.5", "r=10^1000")),
    edited("a constant that vanishes", "E203", ("r=0.5", "r=1/10^1000")),
    edited("roots that overflow", "E203", ("r=0.5", "r=(√2·10^300)^8")),
    library(
        "a long predicate",
        "E323",
        "op f(x[T, H], w[H]; H: nat, eps: real) -> y[T, H]\n  y[t, i] = eps·w[i]·Σ_j softmax_j(x[t, j] | "
        + " and ".join(["(" + " and ".join(f"j != {n}·{k}" for n in range(40)) + ")" for k in range(20)])
        + ")·x[t, j]\n",
        ROW,
    ),
    library(
        "an empty text",
        "E301",
        "op f(x[H]; H: nat) -> y[H]\n  y[i] = " + "·".join(["(" + "+".join(["z"] * 60) + ")"] * 60) + "\n",
    ),
]

TABLE = "[[row_reduction]]\nTILE = 1024\nwarps = 4\nstages = 1\n"
TILES = [
    Attack(f"tiles: {name}", code, {"x.spec": MINI, "t.toml": text}, (*BUILD, "--tiles", "t.toml"))
    for name, code, text in (
        ("long", "E108", "#" * 1_000_000),
        ("rows", "E902", TABLE * 4_000),
        ("nested lists", "E902", "archs = " + "[" * 50_000 + "]" * 50_000),
        ("nested tables", "E902", "archs = " + "{a=" * 20_000 + "1" + "}" * 20_000),
        ("keys", "E902", ".".join(["a"] * 60_000) + " = 1"),
        ("digits", "E902", TABLE.replace("1024", "9" * 100_000)),
        ("digits of a condition", "E902", TABLE + 'when = "H < ' + "9" * 100_000 + '"'),
        ("a tile", "E902", TABLE.replace("1024", str(1 << 200))),
        ("warps", "E902", TABLE.replace("warps = 4", f"warps = {1 << 40}")),
        ("architectures", "E902", "archs = [" + ", ".join(f'"sm_{n}"' for n in range(10_000)) + "]\n" + TABLE),
        ("an architecture", "E902", 'archs = ["sm_' + "9" * 100_000 + '"]\n' + TABLE),
        ("conditions", "E902", TABLE + 'when = "' + " and ".join(["H > 1"] * 20_000) + '"'),
        ("unknown names", "E902", lines("a% = 1", 20_000)),
    )
]  # fmt: skip

COMMANDS = [
    Attack("fmt", "E108", {"x.spec": "#" * 2_000_000}, ("fmt", "x.spec")),
    Attack("fmt of a library", "E107", {"x.ops": "def f(x) = " + "-" * 9_000 + "x\n"}, ("fmt", "x.ops")),
    Attack("show", "E107", {"x.spec": spec(size("(" * 9_000 + "1" + ")" * 9_000))}, ("show", "x.spec")),
    Attack("show of a key", "E280", {"x.spec": MINI}, ("show", "x.spec:" + "a." * 40_000)),
    Attack("show of a long name", "E504", {}, ("show", "a" * 100_000)),
    Attack("show of a long path", "E501", {}, ("show", "a" * 100_000 + ".spec")),
    Attack("show of a layer", "E280", {"x.spec": MINI}, ("show", "x.spec:layers[" + "9" * 100_000 + "].add")),
    Attack("build of a long name", "E504", {}, ("build", "a/" * 50_000)),
    Attack("dump of a stage", "E505", {"x.spec": MINI}, (*BUILD, "--dump-stage", "s" * 100_000)),
    Attack("target", "E505", {"x.spec": MINI}, (*BUILD, "--target", "t" * 100_000)),
    Attack("a folder", "E501", {"x.spec/a": ""}),
    Attack("no arrays", "E501", {"x.spec": MINI, "a.npz": b"PK" * 100}, ("eval", "x.spec:add", "--inputs", "a.npz")),
    Attack("no file of arrays", "E501", {"x.spec": MINI}, ("eval", "x.spec:add", "--inputs", "/dev/zero")),
]

KINDS = {"texts": TEXTS, "models": MODELS, "libraries": LIBRARIES, "tiles": TILES, "commands": COMMANDS}
