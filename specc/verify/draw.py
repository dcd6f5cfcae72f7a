"""Random weights and texts: every parameter gets values at which a dropped or doubled term would show."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod, sqrt

import numpy as np

from specc.ir import Model
from specc.oracle.arrays import Array
from specc.verify.whole import piece_name

RANGES = {"A_log": (-3.0, 0.7), "dt_bias": (-2.0, 1.0)}
"""By the weight operand of an op: values that keep a decay exp(-exp(A_log)·softplus(a + dt_bias)) away from 0 and 1."""
FORGETFUL = {"A_log": (3.4, 8.0)}
"""The same for two heads that forget: decays of some 1e-12, and of exactly 0."""
VECTOR = (0.5, 1.5)
"""Any other vector: norm weights and scales, positive or negative, none near the 0 or 1 that they start from."""


def shapes(model: Model) -> dict[str, tuple[int, ...]]:
    """All checkpoint tensors of a model, by name."""
    found: dict[str, tuple[int, ...]] = {}
    for node in model.nodes:
        for piece in (p for w in node.weights if w.tied is None for p in w.pieces):
            for layer in node.layers or (None,):
                found[piece_name(piece, layer)] = piece.full
    return found


def operands(model: Model) -> dict[str, str]:
    """The operand of an op that a checkpoint tensor feeds, by name of the tensor."""
    found: dict[str, str] = {}
    for node in model.nodes:
        operand = {w: o for use in node.applications for o, w in use.weights}
        for weight in (w for w in node.weights if w.tied is None):
            for layer in node.layers or (None,):
                found |= {piece_name(p, layer): operand[weight.name] for p in weight.pieces}
    return found


def draw_weights(model: Model, seed: Sequence[int], forgetful: bool = False) -> dict[str, Array]:
    """A value for each checkpoint tensor, rounded to bfloat16 so that every type holds it. `forgetful`: the first two
    heads of each recurrence with decays are."""
    generator = np.random.default_rng(seed)
    names = operands(model)
    found = {name: _values(generator, names[name], shape) for name, shape in sorted(shapes(model).items())}
    for name, value in found.items():
        if forgetful and names[name] in FORGETFUL:
            value[:2] = FORGETFUL[names[name]][: len(value)]
    return {name: _bfloat16(value) for name, value in found.items()}


def draw_tokens(model: Model, count: int, seed: Sequence[int]) -> Array:
    """`count` tokens of the vocabulary: as many as the embedding, which reads them, has rows."""
    generator = np.random.default_rng(seed)
    return generator.integers(0, vocabulary(model), count)


def vocabulary(model: Model) -> int:
    """How many tokens there are: rows of the first weight of the node that reads them."""
    node = next(n for n in model.outside(-1) for a in n.applications for r in a.reads if r.wire == "tokens")
    return node.weights[0].shape[0]


def _values(generator: np.random.Generator, operand: str, shape: tuple[int, ...]) -> Array:
    if operand in RANGES:
        return generator.uniform(*RANGES[operand], shape)
    if len(shape) == 1:
        return np.asarray(generator.uniform(*VECTOR, shape) * generator.choice([-1.0, 1.0], shape))
    return generator.standard_normal(shape) / sqrt(prod(shape[1:]))


def _bfloat16(x: Array) -> Array:
    """The nearest values of 8 significant bits."""
    mantissa, exponent = np.frexp(x)
    return np.asarray(np.ldexp(np.round(mantissa * 256) / 256, exponent))
