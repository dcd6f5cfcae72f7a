"""Scalar functions that the nodes of Qwen/Qwen3.8-27B@1.0 share."""

from __future__ import annotations

import torch
from torch import Tensor


def sigmoid(x: Tensor) -> Tensor:
    """sigmoid(x) = 1 / (1 + exp(-x))
    computed as (if x ≥ 0 then 1 else exp(-abs(x))) / (1 + exp(-abs(x)))
    """
    return torch.where(x >= 0, 1, torch.exp(-torch.abs(x))) / (1 + torch.exp(-torch.abs(x)))


def silu(x: Tensor) -> Tensor:
    """silu(x) = x · sigmoid(x)"""
    return x * sigmoid(x)


def softplus(x: Tensor) -> Tensor:
    """softplus(x) = log(1 + exp(x))
    computed as max(x, 0) + log1p(exp(-abs(x)))
    """
    return torch.clamp(x, min=0) + torch.log1p(torch.exp(-torch.abs(x)))


def inv_freq(theta: float, denom: int, active: int, i: Tensor) -> Tensor:
    """invFreq(theta, denom, active, i) = if i < active then theta^(-(2 · i / denom)) else 0"""
    return torch.where(i < active, theta ** -((2 * i).double() / denom), 0)
