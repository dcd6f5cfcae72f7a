"""Derived tolerances: what a conforming kernel may return, from its lowered formula and the data."""

from specc.bounds.arithmetic import NotSupported
from specc.bounds.box import Bound, bound
from specc.bounds.formats import FORMATS, accepts, round_to, store_error, store_interval, usage, vacuity
from specc.bounds.numerics import Accuracy, AnyOrder, Depth, Instruction, Numerics, Tiles, torch, triton

__all__ = [
    "FORMATS",
    "Accuracy",
    "AnyOrder",
    "Bound",
    "Depth",
    "Instruction",
    "NotSupported",
    "Numerics",
    "Tiles",
    "accepts",
    "bound",
    "round_to",
    "store_error",
    "store_interval",
    "torch",
    "triton",
    "usage",
    "vacuity",
]
