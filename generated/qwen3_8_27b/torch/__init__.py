"""Qwen/Qwen3.8-27B@1.0: the PyTorch reference."""

from . import config, layers, nodes, runtime, weights
from .config import PROFILE
from .model import Cache, Model
from .runtime import FLOAT32, FLOAT64, Precision
from .weights import random_checkpoint

__all__ = [
    "FLOAT32",
    "FLOAT64",
    "PROFILE",
    "Cache",
    "Model",
    "Precision",
    "config",
    "layers",
    "nodes",
    "random_checkpoint",
    "runtime",
    "weights",
]
