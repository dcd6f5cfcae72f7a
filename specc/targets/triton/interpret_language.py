"""Puts Triton's language into interpreter mode while a launch runs, and back.

The language's builtins act through the launch's builder, device functions run their rewritten source, hints
are checked.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from typing import Any

import numpy as np
import triton.language as tl
import triton.runtime.interpreter as stock
from triton.runtime.jit import JITFunction

from specc.targets.triton import interpret_numeric as numeric
from specc.targets.triton.interpret_builder import GuardedSemantic
from specc.targets.triton.interpret_faults import FalseHint, KernelError
from specc.targets.triton.interpret_rewrite import (
    LIBDEVICE_MODULES,
    active,
    dispatching,
    loop,
    plain,
    rewritten,
    semantic,
    unrolled,
)
from specc.targets.triton.interpret_scan import reduce_along, scan_along


def call_device_function(jit: JITFunction[Any], *args: Any, **kwargs: Any) -> Any:
    """What calling a jitted function inside a kernel does."""
    kwargs.pop("_semantic", None)
    kwargs.pop("_generator", None)
    semantic().builder.log.note_call(jit.__name__)
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
            patches.append((owner, name, dispatching(member)))
    for owner in (tl, tl.core):
        patches += [(owner, name, value) for name, value in _core_functions().items()]
    return (*patches, *_class_patches(), *_constant_patches(), *_libdevice_patches())


def _core_functions() -> dict[str, Any]:
    return {
        "range": loop,
        "static_range": unrolled,
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
    stubs, real = (importlib.import_module(name) for name in LIBDEVICE_MODULES)
    patches: list[Patch] = []
    for name, member in inspect.getmembers(real, tl.core.is_builtin):
        patches.append((real, name, dispatching(member)))
        if hasattr(stubs, name):
            patches.append((stubs, name, dispatching(member)))
    return patches


_BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "and", "or", "xor", "lshift", "rshift")
_COMPARISONS = ("lt", "gt", "le", "ge", "eq", "ne")


def _constant_patches() -> list[Patch]:
    """A constant on the left of a tensor leaves the operation to the tensor, as the compiler does."""
    names = [f"__{name}__" for name in (*_BINARY, *_COMPARISONS) if hasattr(tl.constexpr, f"__{name}__")]
    return [(tl.constexpr, name, _leaving_tensors(getattr(tl.constexpr, name))) for name in names]


def _leaving_tensors(method: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda self, other: NotImplemented if isinstance(other, tl.tensor) else method(self, other)


def _bind_method(jit: JITFunction[Any], instance: Any, owner: Any = None) -> Any:
    return partial(jit, instance) if isinstance(instance, tl.tensor) else jit


def _tensor_truth(x: Any) -> bool:
    """A block has no truth; Triton's own code asks it of optional arguments and means their presence."""
    data = x.handle.data
    return bool(data.item()) if data.size == 1 else True


def _static_assert(condition: Any, message: str = "") -> None:
    if not plain(condition):
        raise KernelError(f"static assertion failed: {message}")


def _hint(x: Any, values: Any, check: Callable[[Any, int], bool], _semantic: Any = None) -> Any:
    """A compiler hint; false hints make wrong code, so scalars and rows are checked."""
    if not isinstance(x, tl.tensor):
        return x
    listed = [plain(v) for v in (values if isinstance(values, (list, tuple, tl.tuple)) else [plain(values)])]
    if len(listed) != max(1, len(x.shape)):
        raise KernelError(f"a hint needs {max(1, len(x.shape))} values, not {len(listed)}")
    if len(x.shape) < 2 and not check(x.handle.data, int(listed[0])):
        raise FalseHint(f"{check.__name__.removeprefix('_is_')} {listed[0]} does not hold for {x.handle.data}")
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
    outermost = not active
    active.append(rules)
    changed = _apply(_language_patches()) if outermost else []
    try:
        yield
    finally:
        active.pop()
        _undo(changed)


_ABSENT = object()


def _apply(patches: tuple[Patch, ...]) -> list[Patch]:
    changed = [(owner, name, vars(owner).get(name, _ABSENT)) for owner, name, _ in patches]
    for owner, name, value in patches:
        setattr(owner, name, value)
    return changed


def _undo(changed: list[Patch]) -> None:
    for owner, name, before in reversed(changed):
        if before is _ABSENT:
            delattr(owner, name)
        else:
            setattr(owner, name, before)


@contextmanager
def real_arithmetic() -> Iterator[None]:
    """Every floating type is float64 inside: Triton's own type objects change what they are."""
    narrow = (tl.float32, tl.float16, tl.bfloat16)
    before = [dict(vars(kind)) for kind in narrow]
    single_only = [accepted for accepted in _accepted_types() if tl.float64.name not in accepted]
    for kind in narrow:
        vars(kind).update(vars(tl.float64))
    for accepted in single_only:
        accepted.append(tl.float64.name)
    try:
        yield
    finally:
        for accepted in single_only:
            accepted.remove(tl.float64.name)
        for kind, state in zip(narrow, before, strict=True):
            vars(kind).clear()
            vars(kind).update(state)


def _accepted_types() -> list[list[str]]:
    """The lists of type names that Triton's mathematical functions take: `sqrt_rn` is for float32 only."""
    found: list[list[str]] = []
    for member in vars(tl.math).values():
        while inspect.isfunction(member):
            accepted = inspect.getclosurevars(member).nonlocals.get("dtypes")
            if isinstance(accepted, list):
                found.append(accepted)
            member = getattr(member, "__wrapped__", None)
    return found
