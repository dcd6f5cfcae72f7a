"""Puts Triton's language into interpreter mode, kernel by kernel, and back.

A jitted function is rewritten once from its own source: assignments make tensors, `and`, `or`, `not` act on tensors,
loops have typed induction variables. While a launch runs, the language's builtins act through its builder.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from typing import Any

import numpy as np
import triton.language as tl
import triton.runtime.interpreter as stock
from triton.runtime.interpreter import TensorHandle
from triton.runtime.jit import JITFunction

from specc.targets.triton import interpret_numeric as numeric
from specc.targets.triton.interpret_builder import GuardedSemantic
from specc.targets.triton.interpret_faults import FalseHint, KernelError
from specc.targets.triton.interpret_scan import reduce_along, scan_along

_LIBDEVICE_MODULES = ("triton.language.extra.libdevice", "triton.language.extra.cuda.libdevice")
_active: list[GuardedSemantic] = []


def semantic() -> GuardedSemantic:
    """The typing rules and builder of the launch that runs."""
    if not _active:
        raise KernelError("a device function is called outside of a launch")
    return _active[-1]


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
        raise KernelError(
            f"a condition must be a scalar, not a block of shape {list(value.handle.data.shape)}"
        )
    return bool(value)


def _plain(x: Any) -> Any:
    return x.value if isinstance(x, tl.constexpr) else x


def _loop(first: Any, past: Any = None, step: Any = 1, **hints: Any) -> Iterator[Any]:
    """`range` and `tl.range`: the induction variable is a tensor of the bounds' common integer type."""
    rules = semantic()
    low, high = (0, first) if past is None else (first, past)
    bounds = [rules.to_tensor(_plain(x)) for x in (low, high, 1 if step is None else step)]
    kind = bounds[0].dtype
    for bound in bounds[1:]:
        kind = rules.integer_promote_impl(kind, bound.dtype)
    dtype = numeric.numpy_type(kind)
    for i in range(*(int(b.handle.data.item()) for b in bounds)):
        yield tl.tensor(TensorHandle(np.array([i], dtype=dtype), kind), kind)


def _unrolled(first: Any, past: Any = None, step: Any = 1) -> range:
    low, high = (0, first) if past is None else (first, past)
    return range(int(_plain(low)), int(_plain(high)), int(_plain(1 if step is None else step)))


def _scope(jit: JITFunction[Any]) -> dict[str, Any]:
    """The names a kernel sees."""
    own: dict[str, Any] = {
        "_specc_value": _value,
        "_specc_and": _and,
        "_specc_or": _or,
        "_specc_not": _not,
        "_specc_test": _test,
        "range": _loop,
        "min": _dispatching(tl.core.builtin_min),
        "max": _dispatching(tl.core.builtin_max),
    }
    seen = dict(jit.__globals__)
    if jit.fn.__closure__:
        names = zip(jit.fn.__code__.co_freevars, jit.fn.__closure__, strict=True)
        seen |= {name: cell.cell_contents for name, cell in names}
    return own | {name: _bound(value) for name, value in seen.items()}


def _bound(value: Any) -> Any:
    """Builtins and libdevice functions that a module imported by name, made to act on the running launch."""
    if inspect.isfunction(value) and value.__module__ in _LIBDEVICE_MODULES:
        real = getattr(importlib.import_module(_LIBDEVICE_MODULES[1]), value.__name__)
        return _dispatching(inspect.unwrap(real), value.__name__)
    if inspect.isfunction(value) and tl.core.is_builtin(value):
        return _dispatching(value)
    return value


def _dispatching(member: Callable[..., Any], name: str | None = None) -> Callable[..., Any]:
    """`member`, acting through the running launch's rules."""

    def bound(*args: Any, **kwargs: Any) -> Any:
        kwargs["_semantic"] = semantic()
        return member(*args, **kwargs)

    bound.__name__ = name or member.__name__
    return bound


_rewritten: dict[int, tuple[JITFunction[Any], str, Callable[..., Any]]] = {}


def rewritten(jit: JITFunction[Any]) -> Callable[..., Any]:
    """The Python function that runs a jitted function's body in the interpreter. Made once for each source."""
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


def call_device_function(jit: JITFunction[Any], *args: Any, **kwargs: Any) -> Any:
    """What calling a jitted function inside a kernel does."""
    kwargs.pop("_semantic", None)
    kwargs.pop("_generator", None)
    return rewritten(jit)(*args, **kwargs)


Patch = tuple[Any, str, Any]


@cache
def _language_patches() -> tuple[Patch, ...]:
    """Attributes of Triton that mean something else while a kernel is interpreted."""
    descriptor = getattr(tl.core, "tensor_descriptor_base", None)
    owners = [owner for owner in (tl, tl.core, tl.math, tl.tensor, descriptor) if owner is not None]
    patches: list[Patch] = []
    for owner in owners:
        for name, member in inspect.getmembers(owner, tl.core.is_builtin):
            patches.append((owner, name, _dispatching(member)))
    for owner in (tl, tl.core):
        patches += [(owner, name, value) for name, value in _core_functions().items()]
    return (*patches, *_class_patches(), *_libdevice_patches())


def _core_functions() -> dict[str, Any]:
    return {
        "range": _loop,
        "static_range": _unrolled,
        "static_assert": _static_assert,
        "static_print": print,
        "reduce": reduce_along,
        "associative_scan": scan_along,
        "multiple_of": partial(_hint, check=_is_multiple),
        "max_contiguous": partial(_hint, check=_is_contiguous),
        "max_constancy": partial(_hint, check=_is_constant),
    }


def _class_patches() -> list[Patch]:
    patches: list[Patch] = [
        (tl.tensor, "__index__", lambda self: int(self.handle.data.item())),
        (tl.tensor, "__bool__", _tensor_truth),
        (tl.tensor, "__repr__", lambda self: repr(self.handle.data)),
        (tl.tensor, "__str__", lambda self: str(self.handle.data)),
        (tl.tensor, "T", property(lambda self: self.trans())),
        (tl.dtype, "to_ir", lambda self, builder: self),
        (tl.pointer_type, "to_ir", lambda self, builder: self),
        (tl.block_type, "to_ir", lambda self, builder: self),
        (JITFunction, "__call__", call_device_function),
        (JITFunction, "__get__", _bind_method),
        (stock, "_get_np_dtype", numeric.numpy_type),
    ]
    condition = getattr(tl, "condition", None)
    if condition is not None:
        patches.append((condition, "__bool__", lambda self: bool(self.condition)))
    return patches


def _libdevice_patches() -> list[Patch]:
    stubs, real = (importlib.import_module(name) for name in _LIBDEVICE_MODULES)
    patches: list[Patch] = []
    for name, member in inspect.getmembers(real, tl.core.is_builtin):
        patches.append((real, name, _dispatching(member)))
        if hasattr(stubs, name):
            patches.append((stubs, name, _dispatching(member)))
    return patches


def _bind_method(jit: JITFunction[Any], instance: Any, owner: Any = None) -> Any:
    return partial(jit, instance) if isinstance(instance, tl.tensor) else jit


def _tensor_truth(x: Any) -> bool:
    """A block has no truth; Triton's own code asks it of optional arguments and means their presence."""
    data = x.handle.data
    return bool(data.item()) if data.size == 1 else True


def _static_assert(condition: Any, message: str = "") -> None:
    if not _plain(condition):
        raise KernelError(f"static assertion failed: {message}")


def _hint(x: Any, values: Any, check: Callable[[Any, int], bool], _semantic: Any = None) -> Any:
    """A compiler hint; false hints make wrong code, so scalars and rows are checked."""
    if not isinstance(x, tl.tensor):
        return x
    listed = [
        _plain(v) for v in (values if isinstance(values, (list, tuple, tl.tuple)) else [_plain(values)])
    ]
    if len(listed) != max(1, len(x.shape)):
        raise KernelError(f"a hint needs {max(1, len(x.shape))} values, not {len(listed)}")
    if len(x.shape) < 2 and not check(x.handle.data, int(listed[0])):
        raise FalseHint(
            f"{check.__name__.removeprefix('_is_')} {listed[0]} does not hold for {x.handle.data}"
        )
    return x


def _is_multiple(data: Any, value: int) -> bool:
    return data.size > 1 or int(data.flat[0]) % value == 0


def _is_contiguous(data: Any, value: int) -> bool:
    run = min(value, data.size)
    return bool((np.diff(data.astype(np.int64).reshape(-1, run), axis=1) == 1).all())


def _is_constant(data: Any, value: int) -> bool:
    run = min(value, data.size)
    return bool((np.diff(data.astype(np.int64).reshape(-1, run), axis=1) == 0).all())


@contextmanager
def interpreting(rules: GuardedSemantic) -> Iterator[None]:
    """The language acts on `rules` inside; everything is as before outside, also after an exception."""
    outermost = not _active
    _active.append(rules)
    changed = _apply(_language_patches()) if outermost else []
    try:
        yield
    finally:
        _active.pop()
        _undo(changed)


_ABSENT = object()


def _apply(patches: tuple[Patch, ...]) -> list[Patch]:
    changed = [(owner, name, vars(owner).get(name, _ABSENT)) for owner, name, _ in patches]
    for owner, name, value in patches:
        setattr(owner, name, value)
    return changed


def _undo(changed: list[Patch]) -> None:
    for owner, name, before in builtins.reversed(changed):
        if before is _ABSENT:
            delattr(owner, name)
        else:
            setattr(owner, name, before)


@contextmanager
def real_arithmetic() -> Iterator[None]:
    """Every floating type is float64 inside: Triton's own type objects change what they are."""
    narrow = (tl.float32, tl.float16, tl.bfloat16)
    before = [dict(vars(kind)) for kind in narrow]
    for kind in narrow:
        vars(kind).update(vars(tl.float64))
    try:
        yield
    finally:
        for kind, state in zip(narrow, before, strict=True):
            vars(kind).clear()
            vars(kind).update(state)
