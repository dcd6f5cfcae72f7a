"""What it means that a text did nothing."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping


class _Bare(ast.NodeTransformer):
    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        return ast.Constant("") if isinstance(node.value, str) else node


def skeleton(name: str, text: str) -> str:
    """A generated file without its texts: what is left is code, or the shape of a page. SyntaxError for bad Python."""
    if name.endswith(".py"):
        return ast.dump(_Bare().visit(ast.parse(text)))
    if name.endswith((".cu", ".cuh", ".h", ".cpp")):
        return re.sub(r'"(?:[^"\\]|\\.)*"', '""', re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL))
    if name.endswith(".md"):
        return "\n".join(_row(line) for line in text.splitlines() if line.startswith(("|", "#")))
    return ""


def _row(line: str) -> str:
    """How many cells a table's row has; a heading without its text."""
    if line.startswith("#"):
        return re.match("#+", line)[0]  # type: ignore[index]
    return "|" * len(re.findall(r"(?<!\\)\|", line))


def html(page: str) -> list[str]:
    """Tags that a reader of Markdown would obey: those outside of code and not escaped."""
    outside = re.sub(r"\\[\\`*_\[<|~&]", "", page)
    outside = re.sub(r"(`+)(.+?)(?<!`)\1(?!`)", "", outside)
    return re.findall(r"<[a-zA-Z/!]", outside)


def same_code(files: Mapping[str, str], harmless: Mapping[str, str]) -> None:
    """Every file has the code, the rows and the cells that it has with a harmless text."""
    assert files.keys() == harmless.keys()
    for name, text in files.items():
        assert skeleton(name, text) == skeleton(name, harmless[name]), name
        assert all(c.isprintable() or c == "\n" for c in text), name
    assert not html(files["README.md"])


def unshadowed(name: str, text: str) -> None:
    """No function of a Python file gives a name of its own to what it, or the file, also uses under that name."""
    tree = ast.parse(text)
    if name.endswith(("launch.py", "runtime.py")):
        return  # the same text for every model
    top = {n.asname or n.name for x in tree.body if isinstance(x, ast.Import | ast.ImportFrom) for n in x.names}
    top |= {x.name for x in tree.body if isinstance(x, ast.FunctionDef | ast.ClassDef)}
    for function in (x for x in ast.walk(tree) if isinstance(x, ast.FunctionDef)):
        own = {a.arg for a in (*function.args.args, *function.args.kwonlyargs)}
        own |= {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        called = {n.func.id for n in ast.walk(function) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
        bases = {
            n.value.id
            for n in ast.walk(function)
            if isinstance(n, ast.Attribute)
            and isinstance(n.value, ast.Name)
            and n.value.id in MODULES
            and n.value.id in top
        }
        assert not own & (called | bases) - {"cls"}, (name, function.name)
        assert not (own & top & called), (name, function.name)


MODULES = ("torch", "tl", "math", "triton", "libdevice")


def clean_message(text: str) -> None:
    """A terminal shows every character and obeys none."""
    assert all(c.isprintable() or c in "\n\u00a0" for c in text), text
    assert "Traceback" not in text
