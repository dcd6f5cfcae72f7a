"""Every op of the library written a second time, by hand, from its mathematical definition.

NumPy in float64, in plain loops over rows and heads. Nothing here knows the formula language: where an op and
its twin disagree, one of them is wrong. Arguments are float64 arrays (integers for positions and lengths) in
the shapes of the op's signature; leading axes may be any number where the signature has `..`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

# Scalar functions


def sigmoid(x: float) -> float:
    """1 / (1 + e⁻ˣ), each tail by the form that does not overflow."""
    if x >= 0:
        return 1 / (1 + math.exp(-x))
    return math.exp(x) / (1 + math.exp(x))


def silu(x: float) -> float:
    return x * sigmoid(x)


def softplus(x: float) -> float:
    """ln(1 + eˣ)."""
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


def geluTanh(x: float) -> float:
    """½x(1 + tanh u) = x / (1 + e⁻²ᵘ) with u = √(2/π)(x + 0.044715x³)."""
    u = math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)
    return x / (1 + math.exp(-2 * u)) if u > -350 else -0.0


def softcap(c: float, x: float) -> float:
    return c * math.tanh(x / c)


def invFreq(theta: float, denom: int, active: int, i: int) -> float:
    return float(theta ** (-(2 * i) / denom)) if i < active else 0.0


def each(f: Any, x: Array) -> Array:
    """`f` of every element."""
    return np.array([f(float(v)) for v in x.ravel()], dtype=np.float64).reshape(x.shape)


# Normalisation over the last axis


def _rows(x: Array) -> Iterator[tuple[int, ...]]:
    """The leading indices of `x`."""
    yield from np.ndindex(*x.shape[:-1])


def _root_mean_square(row: Array, eps: float) -> float:
    return math.sqrt(math.fsum(float(v) * float(v) for v in row) / len(row) + eps)


def rmsnorm(x: Array, w: Array, eps: float) -> Array:
    y = np.empty_like(x)
    for row in _rows(x):
        y[row] = x[row] / _root_mean_square(x[row], eps) * w
    return y


def rmsnormOffset(x: Array, w: Array, eps: float) -> Array:
    return rmsnorm(x, np.ones_like(w) + w, eps)


def rmsnormUnit(x: Array, eps: float) -> Array:
    return rmsnorm(x, np.ones(x.shape[-1]), eps)


def rmsnormGated(x: Array, z: Array, w: Array, eps: float) -> Array:
    return rmsnorm(x, w, eps) * each(silu, z)


def l2norm(x: Array, eps: float) -> Array:
    y = np.empty_like(x)
    for row in _rows(x):
        y[row] = x[row] / math.sqrt(math.fsum(float(v) ** 2 for v in x[row]) + eps)
    return y


# Linear maps and the feed-forward block


def linear(x: Array, w: Array) -> Array:
    return np.asarray(np.einsum("...k,nk->...n", x, w))


def gateUp(x: Array, wg: Array, wu: Array) -> Array:
    return np.concatenate([linear(x, wg), linear(x, wu)], axis=-1)


def siluMul(gu: Array) -> Array:
    half = gu.shape[-1] // 2
    return each(silu, gu[..., :half]) * gu[..., half:]


def geluMul(gu: Array) -> Array:
    half = gu.shape[-1] // 2
    return each(geluTanh, gu[..., :half]) * gu[..., half:]


def residual(x: Array, h: Array, r: float = 1.0, s: Array | None = None) -> Array:
    """x + r·h; with a layer scalar `s`, the whole sum times it."""
    total = x + r * h
    return total if s is None else float(s[0]) * total


def embed(tokens: Array, w: Array, mul: float = 1.0, norm_eps: float | None = None) -> Array:
    """Rows of the table times `mul`; normalised first where `norm_eps` is given."""
    rows = w[tokens]
    return mul * (rows if norm_eps is None else rmsnormUnit(rows, norm_eps))


def lmHead(x: Array, w: Array, mul: float = 1.0, cap: float | None = None) -> Array:
    z = mul * linear(x, w)
    return z if cap is None else each(lambda v: softcap(cap, v), z)


# Attention


def weights(scores: Array, visible: Array) -> Array:
    """Softmax of one row over its visible places; 0 elsewhere, so nothing where none is visible."""
    out = np.zeros(len(scores))
    seen = np.flatnonzero(visible)
    if len(seen):
        e = np.exp(scores[seen] - scores[seen].max())
        out[seen] = e / e.sum()
    return out


def softmax(s: Array, n: Array) -> Array:
    p = np.empty_like(s)
    for row in _rows(s):
        p[row] = weights(s[row], np.arange(s.shape[-1]) < n[row])
    return p


def attend(q: Array, k: Array, v: Array, visible: Array, scale: float) -> Array:
    """One query [D] over keys and values [L, D]; places that are not visible are not looked at."""
    seen = np.flatnonzero(visible)
    return weights(scale * (k[seen] @ q), np.ones(len(seen), bool)) @ v[seen]


def _attention(q: Array, k: Array, v: Array, visible: Array, scale: float) -> Array:
    """q[T, heads, D], k and v[L, kv_heads, D], visible[T, L]."""
    steps, heads, _ = q.shape
    group = heads // k.shape[1]
    o = np.empty_like(q)
    for t in range(steps):
        for h in range(heads):
            o[t, h] = attend(q[t, h], k[:, h // group], v[:, h // group], visible[t], scale)
    return o


def causalGQA(q: Array, k: Array, v: Array, pos: Array, scale: float) -> Array:
    keys = np.arange(k.shape[0])
    return _attention(q, k, v, keys[None, :] <= pos[:, None], scale)


def slidingGQA(q: Array, k: Array, v: Array, pos: Array, scale: float, window: int) -> Array:
    keys, p = np.arange(k.shape[0])[None, :], pos[:, None]
    return _attention(q, k, v, (keys > p - window) & (keys <= p), scale)


def decodeGQA(q: Array, k: Array, v: Array, seq_lens: Array, scale: float) -> Array:
    o = np.empty_like(q)
    for b in range(q.shape[0]):
        n = int(seq_lens[b])
        o[b] = _attention(q[b : b + 1], k[b, :n], v[b, :n], np.ones((1, n), bool), scale)[0]
    return o


def slidingDecodeGQA(q: Array, k: Array, v: Array, seq_lens: Array, scale: float, window: int) -> Array:
    """Only the last `window` of the cached places."""
    o = np.empty_like(q)
    for b in range(q.shape[0]):
        n = int(seq_lens[b])
        first = max(0, n - window)
        seen = np.ones((1, n - first), bool)
        o[b] = _attention(q[b : b + 1], k[b, first:n], v[b, first:n], seen, scale)[0]
    return o


def sigmoidGate(o: Array, gate: Array) -> Array:
    return o * each(sigmoid, gate)


def rope(x: Array, pos: Array, rot: int, denom: int, active: int, theta: float) -> Array:
    """Two halves of the rotated part turned as complex numbers, put together again, the rest appended."""
    half = rot // 2
    frequencies = np.array([invFreq(theta, denom, active, i) for i in range(half)])
    y = np.empty_like(x)
    for t in range(x.shape[0]):
        for h in range(x.shape[1]):
            pairs = x[t, h, :half] + 1j * x[t, h, half:rot]
            turned = pairs * np.exp(1j * float(pos[t]) * frequencies)
            y[t, h] = np.concatenate([turned.real, turned.imag, x[t, h, rot:]])
    return y


# Gated DeltaNet


def delta_step(S: Array, k: Array, v: Array, alpha: float, beta: float) -> Array:
    """α S (I − β k kᵀ) + β v kᵀ for one head: S[Dv, Dk]."""
    return alpha * (S @ (np.eye(len(k)) - beta * np.outer(k, k))) + beta * np.outer(v, k)


def gdnState(k: Array, v: Array, alpha: Array, beta: Array, S0: Array | None = None) -> Array:
    """The state after every step: [T, Hv, Dv, Dk]."""
    steps, heads, width = v.shape
    group = heads // k.shape[1] if k.shape[1] else 1
    out = np.zeros((steps, heads, width, k.shape[2]))
    for h in range(heads):
        S = np.zeros((width, k.shape[2])) if S0 is None else S0[h]
        for t in range(steps):
            S = delta_step(S, k[t, h // group], v[t, h], float(alpha[t, h]), float(beta[t, h]))
            out[t, h] = S
    return out


def gatedDeltaRule(
    q: Array, k: Array, v: Array, alpha: Array, beta: Array, S0: Array | None = None
) -> tuple[Array, Array]:
    """The last state and the outputs."""
    first = np.zeros((*v.shape[1:], k.shape[2])) if S0 is None else S0
    states = gdnState(k, v, alpha, beta, S0)
    group = v.shape[1] // k.shape[1]
    o = np.empty_like(v)
    for t in range(v.shape[0]):
        for h in range(v.shape[1]):
            o[t, h] = states[t, h] @ q[t, h // group]
    return states[-1] if len(states) else first, o


def gdnStep(S0: Array, q: Array, k: Array, v: Array, alpha: Array, beta: Array) -> tuple[Array, Array]:
    """New states and outputs of one step for each sequence."""
    S, o = np.empty_like(S0), np.empty_like(v)
    group = v.shape[1] // k.shape[1]
    for b in range(v.shape[0]):
        for h in range(v.shape[1]):
            S[b, h] = delta_step(S0[b, h], k[b, h // group], v[b, h], float(alpha[b, h]), float(beta[b, h]))
            o[b, h] = S[b, h] @ q[b, h // group]
    return S, o


def causalConvSilu(x: Array, w: Array) -> Array:
    """x[T, C] convolved with the last K tokens of its own channel; tokens before the first count as 0."""
    width = w.shape[1]
    padded = np.concatenate([np.zeros((width - 1, x.shape[1])), x])
    y = np.empty_like(x)
    for t in range(x.shape[0]):
        y[t] = each(silu, np.einsum("jc,cj->c", padded[t : t + width], w))
    return y


def causalConvSiluFrom(c: Array, x: Array, w: Array) -> tuple[Array, Array]:
    """The window after the tokens x, and their convolution after the window c[K - 1, C]."""
    seen = np.concatenate([c, x])
    return seen[len(x) :], causalConvSilu(seen, w)[len(c) :]


def causalConvSiluStep(c: Array, x: Array, w: Array) -> tuple[Array, Array]:
    """One token x[b] after each window c[b]."""
    pairs = [causalConvSiluFrom(one, token[None], w) for one, token in zip(c, x, strict=True)]
    return np.stack([p[0] for p in pairs]), np.concatenate([p[1] for p in pairs])


def gdnGates(a: Array, b: Array, A_log: Array, dt_bias: Array) -> tuple[Array, Array]:
    """Decay and step size."""
    return np.exp(-np.exp(A_log) * each(softplus, a + dt_bias)), each(sigmoid, b)


def scaled(x: Array, mul: float) -> Array:
    return mul * x
