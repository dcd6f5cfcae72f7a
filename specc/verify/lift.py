"""Float64 where a model asks for float32.

Official code drops to float32 by itself (norms, softmax, tables of angles). `Lift` turns every such request into
float64, in Python calls and in what the library does inside them, and counts the places; no code of the model changes.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

DROPPED, LIFTED = torch.float32, torch.float64
OWN = ("torch", "specc")
"""Packages whose frames are not the place that asks."""


class Lift:
    """Counts of the requests that were lifted, by `file:line` of the code that asked."""

    def __init__(self) -> None:
        self.places: Counter[str] = Counter()

    @property
    def count(self) -> int:
        return sum(self.places.values())

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Everything inside is done in float64. New tensors are float64 where nothing is asked."""
        before = torch.get_default_dtype()
        with ExitStack() as stack:
            stack.callback(torch.set_default_dtype, before)
            torch.set_default_dtype(LIFTED)
            stack.enter_context(_Calls(self))
            stack.enter_context(_Kernels(self))
            yield

    def arguments(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The same arguments with float64 for float32, counted."""
        if not any(a is DROPPED for a in (*args, *kwargs.values())):
            return tuple(args), dict(kwargs)
        self.places[_place()] += 1
        lifted = tuple(LIFTED if a is DROPPED else a for a in args)
        return lifted, {k: LIFTED if v is DROPPED else v for k, v in kwargs.items()}


class _Calls(TorchFunctionMode):
    """What Python code asks for: `x.float()`, `x.to(torch.float32)`, `dtype=torch.float32`."""

    def __init__(self, lift: Lift) -> None:
        super().__init__()
        self.lift = lift

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.Tensor.float:
            self.lift.places[_place()] += 1
            return args[0].to(LIFTED, **(kwargs or {}))
        if func is torch.set_default_dtype:
            return func(*args, **(kwargs or {}))
        args, kwargs = self.lift.arguments(args, kwargs or {})
        return func(*args, **kwargs)


class _Kernels(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """What the library asks for inside its own functions."""

    def __init__(self, lift: Lift) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.lift = lift

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        args, kwargs = self.lift.arguments(args, kwargs or {})
        return func(*args, **kwargs)


def _place() -> str:
    """`modeling_gemma4.py:211`: the innermost frame outside torch and this package."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).split(".")[0] not in OWN:
            return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
        frame = frame.f_back
    return "torch"
