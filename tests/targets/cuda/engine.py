"""A C++ engine in small: a program that knows a generated header and calls every function that it declares."""

from __future__ import annotations

import re

_FUNCTION = re.compile(r"^(int|int64_t|void) (\w+)\(([^)]*)\);", re.MULTILINE)
MAIN = """#include "{header}"

#include <cstdio>

static int wrong = 0;
static void expect(bool right, const char* function, const char* what, long long found) {{
    if (right) return;
    std::fprintf(stderr, "%s, %s: %lld\\n", function, what, found);
    ++wrong;
}}

int main() {{
    alignas(16) static double table[1 << 16] = {{}};
    (void)table;
{calls}
    return wrong != 0;
}}
"""


def functions(header: str) -> list[tuple[str, str, tuple[str, ...]]]:
    """What a header declares: the type of the result, the name, and the arguments as they are declared."""
    found = _FUNCTION.findall(header)
    return [(kind, name, tuple(" ".join(a.split()) for a in given.split(","))) for kind, name, given in found]


def engine(header: str, name: str) -> str:
    """A program that includes the header `name` and calls every function in it. On a machine without a GPU it exits
    with 0 where: no rows are success, or a launch where a recurrence passes the state of a sequence on; what no launch
    can have is cudaErrorInvalidValue (1); a launch says that there is no GPU; and every table and workspace has
    numbers."""
    calls = [line for function in functions(header) for line in _calls(*function)]
    return MAIN.format(header=name, calls="\n".join(f"    {line}" for line in calls))


def _calls(kind: str, name: str, given: tuple[str, ...]) -> list[str]:
    if kind == "void":
        return [f"{name}(table);", f'expect(table[0] == table[0], "{name}", "first number", 0);']
    if kind == "int64_t":
        return [f'expect({name}({", ".join("7" for _ in given)}) > 0, "{name}", "floats", 0);']
    passes_on = "const void* S0" in given and "int64_t B" not in given
    tried = [
        ("no rows", "> 1" if passes_on else "== 0", _values(given, size=0)),
        ("a negative size", "== 1", _values(given, size=-1)),
        ("a size past 31 bits", "== 1", _values(given, size=1 << 31)),
        ("no such storage type", "== 1", _values(given, size=1, storage=7)),
        ("no GPU", "> 1", _values(given, size=1)),
    ]
    if "int index_bytes" in given:
        tried.append(("no such index", "== 1", _values(given, size=1, index=3)))
    if "void* workspace" in given:
        tried.append(("no workspace", "== 1", _values(given, size=1, workspace="nullptr")))
        tried.append(("a workspace between vectors", "== 1", _values(given, size=1, workspace="(char*)table + 4")))
    found = []
    for what, test, values in tried:
        found += [f"{{ const int got = {name}({values});", f'  expect(got {test}, "{name}", "{what}", got); }}']
    return found


def _values(given: tuple[str, ...], size: int, storage: int = 0, index: int = 8, workspace: str = "table") -> str:
    """Arguments by their declarations. Nothing is launched, so that no pointer needs memory of a GPU behind it."""
    named = {"type": str(storage), "index_bytes": str(index), "workspace": workspace}
    return ", ".join(named.get(a.split()[-1]) or _value(a, size) for a in given)


def _value(declared: str, size: int) -> str:
    if "*" in declared or declared.startswith("cudaStream_t"):
        return "nullptr"
    return "16" if "_stride_" in declared else str(size)
