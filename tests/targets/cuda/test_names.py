"""Names of a formula, a node or a model in a CUDA file: whatever they are, the file compiles. What files say themselves
is read off the templates and off what is printed; what compilers claim, off their headers."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain, count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from specc.kernels import Kernel
from specc.resources import shipped
from specc.targets.cuda import host
from specc.targets.cuda.aot import available, cubin, headers
from specc.targets.cuda.emit import emit
from specc.targets.cuda.header import header
from specc.targets.cuda.names import VOCABULARY, namespace
from specc.targets.cuda.tiles import CPU
from specc.targets.naming import Vocabulary, inside
from tests.evidence.planted import NODES, library
from tests.targets.cuda.generated import library_op
from tests.targets.cuda.storage import single
from tests.targets.cuda.test_schedules import kernel as scheduled

TEMPLATES = Path(str(shipped("templates"))) / "cuda"
INCLUDED = '#include "specc_tile.cuh"\n#include "specc_launch.cuh"\n'
STANDARD = """
    assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign stdarg stdbool
    stddef stdint stdio stdlib stdnoreturn string tgmath threads time uchar wchar wctype
"""
"""Headers of C."""
SCHEDULES = {
    "gather": lambda: scheduled("rows of a table that two axes choose"),
    "pointwise": lambda: NODES["rope"].kernel(library()),
    "row_reduction": lambda: NODES["rmsnorm"].kernel(library()),
    "contraction": lambda: scheduled("lmHead"),
    "attention_prefill": lambda: scheduled("slidingGQA"),
    "attention_decode": lambda: scheduled("decode with a slope, of two keys in three"),
    "recurrence": lambda: scheduled("recurrence that looks for another vector"),
}
NO_NAMES = re.compile(
    r'\{[{%#].*?[%}#]\}|//[^\n]*|/\*.*?\*/|"[^"\n]*"|#[^\n]*|(?:\.|->|::) ?~?\w+|\b\d[\w.]*', re.DOTALL
)
"""Of a C++ text: what holds no name that one of a formula could take the place of."""


def words(text: str) -> set[str]:
    return set(re.findall(r"[A-Za-z_]\w*", NO_NAMES.sub(" ", text)))


@dataclass(frozen=True)
class Given(Vocabulary):
    """Renames everything in a kernel to what comes next."""

    names: Iterator[str]

    def legal_name(self, name: str) -> str:
        return next(self.names)


def renamed(kernel: Kernel, names: Iterable[str], node: str = "node") -> Kernel:
    """The kernel with `names` as the names of its functions, operands, sizes and axes, as far as they go."""
    spare = (f"zz{n}" for n in count())
    given = Given(VOCABULARY.reserved, VOCABULARY.template, VOCABULARY.derived, chain(names, spare))
    return replace(given.legal(kernel, ()), name=node)


@cache
def own_words(schedule: str) -> tuple[str, ...]:
    """What a file of this schedule, and the header for it, say whatever names the formula has."""
    kernel = renamed(SCHEDULES[schedule](), (), "zz_node")
    found = words(emit(kernel, "zz_space", CPU)) | words(header([kernel], "zz_space"))
    found = {re.sub(r"_\d+$", "", w) for w in found if "zz" not in w}
    return tuple(sorted(found - chosen(kernel)))


def chosen(kernel: Kernel) -> set[str]:
    """Names that lowering has chosen, other than those of the formula."""
    fields = ("accumulator", "dot", "kv_head")
    found = {getattr(v, field, "") for v in inside(kernel.schedule) for field in fields}
    return found | {t.var for t in kernel.tables}


def check(text: str, *arguments: str) -> None:
    """Every warning is an error."""
    plain = [f for f in (*host.COMMON, *host.flags()) if f not in host.WATCHED]
    folders = [f"-I{TEMPLATES}", f"-I{TEMPLATES / 'host'}"]
    command = [*host.compiler(), *plain, *folders, "-fsyntax-only", *arguments, "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[:3000]


def macros(text: str, *arguments: str) -> set[str]:
    """What is defined behind `text`, but for names that no formula can have."""
    folders = [f"-I{TEMPLATES}", f"-I{TEMPLATES / 'host'}"]
    command = [*host.compiler(), *arguments, *folders, "-dM", "-E", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60, check=True)
    return set(re.findall(r"^#define ([A-Za-z]\w*)", done.stdout, re.MULTILINE))


def toolkit() -> Iterator[str]:
    """The texts of the headers of CUDA that a kernel file brings along."""
    folder, queue, seen = headers(), ["cuda_bf16.h", "cuda_fp16.h", "cuda_runtime.h"], set[Path]()
    assert folder is not None
    for name in queue:
        path = folder / name
        if path not in seen and path.is_file():
            seen.add(path)
            text = path.read_text(encoding="utf-8", errors="replace")
            queue += re.findall(r'^ *# *include *["<]([^">]+)', text, re.MULTILINE)
            yield text


def test_names_written_in_templates_are_kept_from_formulas() -> None:
    found = {w for p in TEMPLATES.glob("*.j2") for w in words(p.read_text(encoding="utf-8"))}
    assert len(found) > 100
    assert not [w for w in sorted(found) if VOCABULARY.legal_name(w) == w]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_names_printed_into_files_are_kept_from_formulas(schedule: str) -> None:
    assert SCHEDULES[schedule]().schedule_name == schedule
    assert not [w for w in own_words(schedule) if VOCABULARY.legal_name(w) == w]


def test_macros_of_the_headers_are_kept_from_formulas() -> None:
    c = "".join(f"#include <{name}.h>\n" for name in STANDARD.split())
    found = macros(INCLUDED, "-std=gnu++20", "-x", "c++") | macros(c, "-std=gnu17", "-x", "c")
    if available():
        found |= {m for text in toolkit() for m in re.findall(r"^ *# *define +([A-Za-z]\w*)", text, re.MULTILINE)}
    assert {"NULL", "INFINITY", "stdin", "isalpha", "PRId64", "threadIdx"} <= found
    assert not [m for m in sorted(found) if VOCABULARY.legal_name(m) == m]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_everything_in_a_formula_may_be_named_like_what_its_file_says(schedule: str) -> None:
    kernel = SCHEDULES[schedule]()
    many = len({o.name for o in kernel.operands}) + len(kernel.sizes) + 2
    texts = []
    found = own_words(schedule)
    for n in range(-(-len(found) // many)):
        own = renamed(kernel, found[n * many : (n + 1) * many], f"node_{n}")
        texts.append(single(emit(own, f"space_{n}", CPU), "float32"))
    check("\n".join(texts))


@cache
def header_words() -> tuple[str, ...]:
    """All words of small letters in what a compiler sees of the headers."""
    folders = [f"-I{TEMPLATES}", f"-I{TEMPLATES / 'host'}"]
    command = [*host.compiler(), "-std=gnu++20", "-x", "c++", *folders, "-E", "-P", "-"]
    done = subprocess.run(command, input=INCLUDED, capture_output=True, text=True, timeout=60, check=True)
    texts = [done.stdout, *(toolkit() if available() else ())]
    return tuple(sorted(w for text in texts for w in words(text) if re.fullmatch("[a-z][a-z0-9_]*", w)))


@cache
def wide(many: int) -> Kernel:
    """A kernel of so many operands, and as many functions."""
    functions = "".join(f"def f{n}(x) = x · {n}\n" for n in range(many))
    operands = ", ".join(f"a{n}[T, H]" for n in range(many))
    terms = " + ".join(f"f{n}(a{n}[t, i])" for n in range(many))
    return library_op(f"{functions}op m({operands}; H: nat) -> y[T, H]\n  y[t, i] = {terms}\n", "m", H=20)


def test_operands_and_functions_may_be_named_like_anything_in_the_headers() -> None:
    found, kernel, many = header_words(), wide(60), 120
    texts = []
    for n in range(-(-len(found) // many)):
        own = renamed(kernel, found[n * many : (n + 1) * many], f"node_{n}")
        texts.append(single(emit(own, f"space_{n}", CPU), "float32"))
    check("\n".join(texts))


def space(key: str) -> str:
    model: Any = SimpleNamespace(key=key)
    return namespace(model)


def test_a_model_may_be_named_like_anything_in_the_headers() -> None:
    names = sorted({space(f"org/{w}") for w in (*header_words(), *chain(*map(own_words, SCHEDULES)))})
    text = "".join(f"namespace {n} {{ struct S; }}\n" for n in names)
    check(INCLUDED + text)
    if available():
        cubin(f'#include "specc_tile.cuh"\n{text}__global__ void k() {{}}\n', "sm_90", ("k",))


@pytest.mark.parametrize(("key", "found"), [
    ("google/gemma-4-31B", "gemma_4_31b"), ("org/float4", "model_float4"), ("org/NULL", "model_null"),
    ("org/7b-x", "model_7b_x"), ("org/make-float4", "model_make_float4"), ("org/namespace", "model_namespace"),
])  # fmt: skip
def test_what_a_model_is_called(key: str, found: str) -> None:
    assert space(key) == found


@pytest.mark.skipif(not available(), reason="needs specc[cuda]")
@pytest.mark.parametrize("schedule", ["pointwise", "row_reduction"])
def test_nvrtc_takes_names_of_macros_of_types_and_of_the_file(schedule: str) -> None:
    names = [
        "NULL",
        "NAN",
        "float4",
        "kernel",
        "bytes",
        "threads",
        "INFINITY",
        "uint",
        "half2",
        "M_PI",
        "errno",
        "place",
    ]
    kernel, own = renamed(SCHEDULES[schedule](), names, "signal"), space("org/float4")
    cubin(emit(kernel, own), "sm_90", (f"{own}::signal_kernel<float, 1>",))
