"""The error of a chunk of steps of a recurrence that is worked out as products of matrices and a triangular system."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from specc.bounds.arithmetic import Arithmetic
from specc.bounds.exact import granularity, sum_is_exact
from specc.bounds.formats import EPS64, Array
from specc.bounds.numerics import Tiles
from specc.bounds.recurrence import Local, Parts, Stretch
from specc.bounds.sums import contraction, gamma
from specc.bounds.values import EXACT, Val, place

CUT = 2.0
"""Unit roundoffs of a product of two float32 factors that are cut into three parts each: a2·b3, a3·b2 and a3·b3 are
left out, and a part is at most 2^-8 of what the parts before it leave."""
SMALL = 0.05
"""Parts but the first add up to less than 2 · 2^-8 of a sum, in up to 5 times as many terms."""


def chunks(sizes: tuple[int, ...]) -> Local:
    """Stretches of any one of `sizes` steps, the worst of them taken at every place."""
    return lambda parts, states: _worst([_stretches(parts, states, n) for n in sizes])


def _stretches(parts: Parts, states: Array, size: int) -> list[Stretch]:
    steps = len(states) - 1
    return [_Chunk(parts, states, s, min(s + size, steps)).stretch() for s in range(0, steps, size)]


def _worst(found: list[list[Stretch]]) -> list[Stretch]:
    """Errors that no choice passes: a single one as it is; of several, the sum of the states' errors wherever one ends,
    and the worst of the readings'."""
    if len(found) == 1:
        return found[0]
    ends = sorted({s.end for choice in found for s in choice})
    merged: list[Stretch] = []
    for start, end in zip([0, *ends[:-1]], ends, strict=True):
        state = sum((s.state for choice in found for s in choice if s.end == end), np.zeros(1))
        sums = []
        for n, own in enumerate(found[0][0].sums):
            parts = [s.sums[n][:, start - s.start : end - s.start] for c in found for s in c  # type: ignore[index]
                     if own is not None and s.start <= start < s.end]  # fmt: skip
            sums.append(np.max(parts, axis=0) if parts else None)
        merged.append(Stretch(start, end, np.asarray(state), tuple(sums)))
    return merged


class _Chunk:
    """Axes: h heads, i and j steps of the chunk, a values, b keys."""

    def __init__(self, parts: Parts, states: Array, start: int, end: int) -> None:
        self.parts, self.start, self.end = parts, start, end
        self.states = states[start : end + 1]
        self.length = end - start
        self.arithmetic: Arithmetic = parts.evaluator.arithmetic
        self.earlier = np.tril(np.ones((self.length, self.length)), -1)

    def stretch(self) -> Stretch:
        m, state = self.arithmetic, Val(("h", "a", "b"), self.states[0])
        decay = self.own(self.parts.values["decay"])
        fade, since = _fades(m, decay, self.parts.evaluator.numerics.format.unit)
        added, gone = self.own(self.parts.values["added"]), None
        if "rate" in self.parts.values:
            rate = self.own(self.parts.values["rate"])
            gone = m.mul(rate, self.finds(state, fade, since, rate, added))
            if self.parts.shared:
                added, gone = m.sub(added, gone), None
        sums = tuple(
            None if q is None else self.reading(self.own(q), n, state, fade, since, added, gone)
            for n, q in enumerate(self.parts.queries)
        )
        after = self.after(state, fade, since, added, gone)
        return Stretch(self.start, self.end, after, sums)

    def own(self, v: Val) -> Val:
        """The steps of the chunk of what runs over h, i and perhaps more."""
        part = slice(self.start, self.end)
        return Val(v.axes, v.value[:, part], v.error if v.error.ndim == 0 else v.error[:, part])

    def vector(self, name: str, axis: str = "j") -> Val:
        return replace(self.own(self.parts.values[name]), axes=("h", axis, "b"))

    def product(self, a: Val, b: Val, over: str, start: Val | None = None) -> Val:
        """start + Σ a·b on tensor cores, with factors in float32 cut."""
        m, depth = self.arithmetic, self.parts.evaluator.numerics.depth.contraction
        v = contraction(m, a, b, over, (depth,))
        size = contraction(m, Val(a.axes, np.abs(a.value)), Val(b.axes, np.abs(b.value)), over, (depth,)).value
        n, per_term = a.value.shape[a.axes.index(over)], depth.per_term
        inexact = np.asarray(v.error > 0)
        error = v.error + np.where(inexact, (CUT + 1 + SMALL * n * per_term) * m.unit * size, 0.0)
        v = m.finish(v.axes, v.value, np.broadcast_to(error, v.value.shape))
        if start is None:
            return v
        out = m.add(start, v)
        share = gamma(n * per_term, m.unit) if isinstance(depth, Tiles) else gamma(n, m.unit)
        full = np.broadcast_to(_like(start, out).value, out.value.shape)
        return m.finish(out.axes, out.value, out.error + np.where(out.error > 0, share * np.abs(full), 0.0))

    def masked(self, v: Val) -> Val:
        """`v` [h, i, j] where j is earlier than i."""
        return Val(v.axes, v.value * self.earlier, v.error if v.error.ndim == 0 else v.error * self.earlier)

    def finds(self, state: Val, fade: Val, since: Val, rate: Val, added: Val) -> Val:
        """What each step finds in the state before it, decayed [h, i, a]."""
        m = self.arithmetic
        probe = self.vector("probe", "i")
        meets = m.mul(fade, self.product(probe, self.vector("erase"), "b"))
        gives = meets if self.parts.shared else m.mul(fade, self.product(probe, self.vector("write"), "b"))
        pull = m.mul(self.masked(meets), replace(rate, axes=("h", "j")))
        first = m.mul(since, self.product(probe, state, "b"))
        right = self.product(self.masked(gives), replace(added, axes=("h", "j", "a")), "j", first)
        return self.solved(pull, right)

    def solved(self, pull: Val, right: Val) -> Val:
        """(1 + pull)⁻¹ right, from the first step on. A residual η, rounding and errors of the system, makes an error
        of |(1 + pull)⁻¹| η, which does not grow as sums of magnitudes would."""
        m, n = self.arithmetic, self.length
        inverse = np.linalg.inv(np.eye(n) + pull.value)
        value = inverse @ right.value
        error, residual = np.zeros_like(value), np.zeros_like(value)
        pulled, own = np.abs(pull.value), np.broadcast_to(pull.error, pull.value.shape)
        given = np.broadcast_to(right.error, right.value.shape)
        for i in range(n):
            terms = np.concatenate([right.value[:, i, None], -pull.value[:, i, :i, None] * value[:, :i]], axis=1)
            size = np.sum(np.abs(terms), axis=1) + np.einsum("hj,hja->ha", pulled[:, i, :i], error[:, :i])
            met = given[:, i] + np.einsum("hj,hja->ha", own[:, i, :i], np.abs(value[:, :i]) + error[:, :i])
            grain = np.squeeze(granularity(terms, 1), axis=1)
            clean = np.all((error[:, :i] == 0) | (pulled[:, i, :i, None] == 0), axis=1) & (met == 0)
            exact = clean & sum_is_exact(size, grain, m.numerics.format.precision)
            rounding = gamma(i + 2, m.unit) * size + gamma(i + 2, EPS64) * size + (i + 1) * m.numerics.flush
            residual[:, i] = np.where(exact, 0.0, met + (rounding if i else 0.0))
            error[:, i] = np.einsum("hj,hja->ha", np.abs(inverse[:, i, : i + 1]), residual[:, : i + 1])
        return m.finish(right.axes, value, error if np.any(error) else EXACT)

    def reading(
        self, query: Val, n: int, state: Val, fade: Val, since: Val, added: Val, gone: Val | None
    ) -> Array:  # fmt: skip
        m = self.arithmetic
        out = m.mul(since, self.product(query, state, "b"))
        meets = m.mul(fade, self.product(query, self.vector("write"), "b"))
        out = self.product(meets, replace(added, axes=("h", "j", "a")), "j", out)
        if gone is not None:
            meets = m.mul(fade, self.product(query, self.vector("erase"), "b"))
            out = self.product(meets, replace(m.neg(gone), axes=("h", "j", "a")), "j", out)
        scale = self.parts.scales[n]
        out = out if scale is None else m.mul(self.own(scale), out)
        return np.broadcast_to(out.error, (*out.value.shape[:2], self.states.shape[2]))

    def after(self, state: Val, fade: Val, since: Val, added: Val, gone: Val | None) -> Array:
        """The error of the state after the chunk [h, a, b]."""
        m, end = self.arithmetic, self.length - 1
        last = Val(("h", "j"), fade.value[:, end], fade.error if fade.error.ndim == 0 else fade.error[:, end])
        faded = Val(("h",), since.value[:, end], since.error if since.error.ndim == 0 else since.error[:, end])
        out = m.mul(faded, state)
        for vector, what in (("write", added), ("erase", None if gone is None else m.neg(gone))):
            if what is not None:
                part = m.mul(last, replace(what, axes=("h", "j", "a")))
                out = self.product(part, self.vector(vector), "j", out)
        placed = _like(out, Val(("h", "a", "b"), state.value))
        return np.broadcast_to(placed.error, state.value.shape)


def _like(v: Val, other: Val) -> Val:
    """`v` with the axes of `other`."""
    error = v.error if v.error.ndim == 0 else place(v.error, v.axes, other.axes)
    return Val(other.axes, place(v.value, v.axes, other.axes), error)


def _fades(m: Arithmetic, decay: Val, unit: float) -> tuple[Val, Val]:
    """Products of decays after step j up to step i [h, i, j], and of all up to step i [h, i], in any order. A factor of
    0 or a power of two does not round."""
    size = np.abs(decay.value) + decay.error
    rounds = np.where((np.abs(np.frexp(decay.value)[0]) == 0.5) | (decay.value == 0), 1.0, 1.0 + unit + EPS64)
    n = decay.value.shape[1]
    later = np.tril(np.ones((n, n)), -1)[None, :, :]
    lower = np.tril(np.ones((n, n)))[None, :, :]

    def products(x: Array) -> tuple[Array, Array]:
        return np.cumprod(np.where(later > 0, x[:, :, None], 1.0), axis=1) * lower, np.asarray(np.cumprod(x, axis=1))

    value, most = products(decay.value), products(size * rounds)
    least = products(np.abs(decay.value))
    fade, since = (hi - lo for hi, lo in zip(most, least, strict=True))
    return (
        m.finish(("h", "i", "j"), value[0], np.maximum(fade, 0.0)),
        m.finish(("h", "i"), value[1], np.maximum(since, 0.0)),
    )
