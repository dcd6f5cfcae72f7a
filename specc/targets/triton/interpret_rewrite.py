"""Runs the source of a jitted function as Python over the running launch's builder.

The function is rewritten once: assignments make tensors, `and`, `or`, `not` act on tensors, conditions must
be scalars, loops have typed induction variables.
"""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime.interpreter import TensorHandle
from triton.runtime.jit import JITFunction

from specc.targets.triton import interpret_numeric as numeric
from specc.targets.triton.interpret_builder import GuardedSemantic
from specc.targets.triton.interpret_faults import KernelError

LIBDEVICE_MODULES = ("triton.language.extra.libdevice", "triton.language.extra.cuda.libdevice")
active: list[GuardedSemantic] = []
"""The launches that run, the innermost last."""


def semantic() -> GuardedSemantic:
    """The typing rules and builder of the launch that runs."""
    if not active:
        raise KernelError("a device function is called outside of a launch")
    return active[-1]


class _Rewriter(ast.NodeTransformer):
    """Gives Python's statements the meaning they have in a Triton kernel."""

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        self.generic_visit(node)
        node.value = _call("_specc_value", node.value)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        self.generic_visit(node)
        if node.value is not None and not ast.unparse(node.annotation).endswith("constexpr"):
            node.value = _call("_specc_value", node.value)
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        name = "_specc_and" if isinstance(node.op, ast.And) else "_specc_or"
        return _call(name, *(_delayed(value) for value in node.values))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        return _call("_specc_not", node.operand) if isinstance(node.op, ast.Not) else node

    def visit_If(self, node: ast.If) -> ast.AST:
        self.generic_visit(node)
        node.test = _call("_specc_test", node.test)
        return node

    def visit_While(self, node: ast.While) -> ast.AST:
        self.generic_visit(node)
        node.test = _call("_specc_test", node.test)
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        node.test = _call("_specc_test", node.test)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if len(node.ops) > 1:
            raise KernelError(f"{ast.unparse(node)}: Triton 3.6 has no chained comparison")
        return node


def _call(name: str, *args: ast.expr) -> ast.Call:
    return ast.Call(func=ast.Name(id=name, ctx=ast.Load()), args=list(args), keywords=[])


def _delayed(value: ast.expr) -> ast.Lambda:
    none = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    return ast.Lambda(args=none, body=value)


def _value(x: Any) -> Any:
    return semantic().to_tensor(x, False)


def _truth(values: tuple[Callable[[], Any], ...], method: str, decided: bool) -> Any:
    """Short-circuits on compile-time operands, combines tensors."""
    result: Any = None
    for value in (v() for v in values):
        if not isinstance(value, tl.tensor):
            if bool(value) is decided:
                return value
            result = value if result is None else result
        else:
            result = getattr(result, method)(value) if isinstance(result, tl.tensor) else value
    return result


def _and(*values: Callable[[], Any]) -> Any:
    return _truth(values, "logical_and", False)


def _or(*values: Callable[[], Any]) -> Any:
    return _truth(values, "logical_or", True)


def _not(value: Any) -> Any:
    return value.__not__() if isinstance(value, tl.tensor) else not value


def _test(value: Any) -> bool:
    if isinstance(value, tl.tensor) and value.shape:
        raise KernelError(f"a condition must be a scalar, not a block of shape {list(value.handle.data.shape)}")
    return bool(value)


def plain(x: Any) -> Any:
    """The value of a compile-time constant; anything else as it is."""
    return x.value if isinstance(x, tl.constexpr) else x


def loop(first: Any, past: Any = None, step: Any = 1, **hints: Any) -> Iterator[Any]:
    """`range` and `tl.range`: the induction variable is a tensor of the bounds' common integer type."""
    rules = semantic()
    low, high = (0, first) if past is None else (first, past)
    bounds = [rules.to_tensor(plain(x)) for x in (low, high, 1 if step is None else step)]
    kind = bounds[0].dtype
    for bound in bounds[1:]:
        kind = rules.integer_promote_impl(kind, bound.dtype)
    dtype = numeric.numpy_type(kind)
    for i in range(*(int(b.handle.data.item()) for b in bounds)):
        yield tl.tensor(TensorHandle(np.array([i], dtype=dtype), kind), kind)


def unrolled(first: Any, past: Any = None, step: Any = 1) -> range:
    """`tl.static_range`: the induction variable is a constant."""
    low, high = (0, first) if past is None else (first, past)
    return range(int(plain(low)), int(plain(high)), int(plain(1 if step is None else step)))


def _scope(jit: JITFunction[Any]) -> dict[str, Any]:
    """The names a kernel sees."""
    own: dict[str, Any] = {
        "_specc_value": _value,
        "_specc_and": _and,
        "_specc_or": _or,
        "_specc_not": _not,
        "_specc_test": _test,
        "range": loop,
        "min": dispatching(tl.core.builtin_min),
        "max": dispatching(tl.core.builtin_max),
    }
    seen = dict(jit.__globals__)
    if jit.fn.__closure__:
        names = zip(jit.fn.__code__.co_freevars, jit.fn.__closure__, strict=True)
        seen |= {name: cell.cell_contents for name, cell in names}
    return own | {name: _bound(value) for name, value in seen.items()}


def _bound(value: Any) -> Any:
    """Builtins and libdevice functions that a module imported by name, made to act on the running launch."""
    if inspect.isfunction(value) and value.__module__ in LIBDEVICE_MODULES:
        real = getattr(importlib.import_module(LIBDEVICE_MODULES[1]), value.__name__)
        return dispatching(inspect.unwrap(real), value.__name__)
    if inspect.isfunction(value) and tl.core.is_builtin(value):
        return dispatching(value)
    return value


def dispatching(member: Callable[..., Any], name: str | None = None) -> Callable[..., Any]:
    """`member`, acting through the running launch's rules."""

    def bound(*args: Any, **kwargs: Any) -> Any:
        kwargs["_semantic"] = semantic()
        return member(*args, **kwargs)

    bound.__name__ = name or member.__name__
    return bound


_rewritten: dict[int, tuple[JITFunction[Any], str, Callable[..., Any]]] = {}


def rewritten(jit: JITFunction[Any]) -> Callable[..., Any]:
    """The Python function that runs a jitted function's body. Made once for each source."""
    known = _rewritten.get(id(jit))
    if known is not None and known[0] is jit and known[1] is jit.src:
        return known[2]
    tree = ast.parse(jit.src)
    definition = tree.body[0]
    assert isinstance(definition, ast.FunctionDef)
    arguments = definition.args
    for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        argument.annotation = None
    definition.returns = None
    tree = ast.fix_missing_locations(_Rewriter().visit(tree))
    ast.increment_lineno(tree, _definition_line(jit) - 1)
    scope = _scope(jit)
    exec(compile(tree, jit.fn.__code__.co_filename, "exec"), scope)  # noqa: S102
    function: Callable[..., Any] = scope[definition.name]
    scope[definition.name] = jit
    _rewritten[id(jit)] = (jit, jit.src, function)
    return function


def _definition_line(jit: JITFunction[Any]) -> int:
    lines = enumerate(jit.raw_src)
    offset = next(i for i, line in lines if line.lstrip().startswith("def "))
    return int(jit.starting_line_number) + offset
