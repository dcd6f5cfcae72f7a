"""Ops a user might write whose formulas fit a schedule."""

from __future__ import annotations

from fractions import Fraction

from tests.lower.cases import Case

ATTENTION = "op f(q[T, N, D], k[L, M, D], v[L, M, D], pos[T]: index; N: nat, M: nat, D: nat) -> o[T, N, D]\n"
DECODE = "op f(q[B, N, D], k[B, S, M, D], v[B, S, M, D], n[B]: index; N: nat, M: nat, D: nat) -> o[B, N, D]\n"
HEADS = {"N": 6, "M": 2, "D": 4}
POS = {"pos": lambda n: (0, n["L"] + 2)}
LENGTHS = {"n": lambda n: (0, n["S"])}


def attention(name: str, body: str, signature: str = ATTENTION, **constants: int) -> Case:
    decode = signature == DECODE
    schedule = "attention_decode" if decode else "attention_prefill"
    return Case(name, schedule, {**HEADS, **constants}, signature + body, index=LENGTHS if decode else POS)


def masked(name: str, predicate: str) -> Case:
    """Prefill with a predicate of its own."""
    given = f" | {predicate}" if predicate else ""
    return attention(
        name,
        "let z[l] = 1/2 · Σ_e q[t, h, e]·k[l, h // (N // M), e]\n"
        f"o[t, h, d] = Σ_l softmax_l(z[l]{given}) · v[l, h // (N // M), d]",
    )


NORMS = (
    Case("layernorm", "row_reduction", {"H": 7, "eps": Fraction("1e-5")}, """
      op f(x[.., H], w[H]; H: nat, eps: real) -> y[.., H]
        let m = Σ_j x[.., j] / H
        let c[i] = x[.., i] - m
        y[.., i] = c[i] / √(Σ_j c[j]² / H + eps) · w[i]""", lead=2),
    Case("layernorm with bias", "row_reduction", {"H": 3, "eps": Fraction("1e-5")}, """
      op f(x[.., H], w[H], b[H]; H: nat, eps: real) -> y[.., H]
        let m = Σ_i x[.., i] / H
        y[.., i] = (x[.., i] - m) / √(Σ_i (x[.., i] - m)² / H + eps) · w[i] + b[i]""", lead=1),
    Case("gated norm", "row_reduction", {"H": 5, "eps": Fraction("1e-5")}, """
      op f(x[.., H], g[.., H], w[H]; H: nat, eps: real) -> y[.., H]
        let a[i] = x[.., i] · silu(g[.., i])
        y[.., i] = a[i] / √(Σ_j a[j]² / H + eps) · w[i]""", lead=1),
    Case("norm over the maximum", "row_reduction", {"H": 5, "eps": Fraction("1e-5")}, """
      op f(x[.., H]; H: nat, eps: real) -> y[.., H]
        let m = Max_j abs(x[.., j]) + eps
        y[.., i] = x[.., i] / m / √(Σ_j (x[.., j] / m)² / H + eps)""", lead=1),
    Case("sum where larger than the mean", "row_reduction", {"H": 6}, """
      op f(x[.., H]; H: nat) -> y[.., H]
        let m = Σ_j x[.., j] / H
        y[.., i] = x[.., i] - Σ_{j < H | x[.., j] > m} x[.., j]""", lead=1),
    Case("two results", "row_reduction", {"H": 4, "eps": Fraction("1e-5")}, """
      op f(x[.., H], h[.., H], w[H]; H: nat, eps: real) -> s[.., H], y[.., H]
        let a[i] = x[.., i] + h[.., i]
        s[.., i] = a[i]
        y[.., i] = a[i] / √(Σ_j a[j]² / H + eps) · w[i]""", lead=1),
    Case("softmax of softmax", "row_reduction", {"H": 4}, """
      op f(x[.., H]; H: nat) -> y[.., H]
        let p[l] = softmax_l(x[.., l])
        y[.., l] = softmax_l(p[l])""", lead=1),
    Case("entropy of a row", "row_reduction", {"H": 4}, """
      op f(x[.., H]; H: nat) -> y[.., H]
        y[.., i] = Σ_l softmax_l(x[.., l]) · x[.., l]""", lead=1),
    Case("permuted row", "row_reduction", {"H": 4}, """
      op f(x[.., H], p[H]: index; H: nat) -> y[.., H]
        let a[i] = x[.., p[i]]
        y[.., i] = a[i] / Σ_j abs(a[j])""", lead=1, index={"p": lambda n: (0, 3)}),
)  # fmt: skip

POINTWISE = (
    Case("ReLU²-gated unit", "pointwise", {"I": 5}, """
      op f(g[.., I], u[.., I]; I: nat) -> y[.., I]
        y[.., i] = relu(g[.., i])² · u[.., i]""", lead=1),
    Case("stencil with a guard", "pointwise", {"C": 3}, """
      op f(x[T, C]; C: nat) -> y[T, C]
        y[t, c] = x[t, c] - (if t ≥ 2 then x[t - 2, c] else 1)"""),
    Case("stencil ahead", "pointwise", {"C": 3}, """
      op f(x[T, C]; C: nat) -> y[T, C]
        y[t, c] = if t + 1 < T then x[t + 1, c] - x[t, c] else 0"""),
    Case("stencil inside the row", "pointwise", {"C": 7}, """
      op f(x[T, C]; C: nat) -> y[T, C]
        y[t, c] = if 0 < c and c < C - 1 then x[t, c + 1] - 2·x[t, c] + x[t, c - 1] else 0"""),
    Case("one element apart", "pointwise", {"C": 7}, """
      op f(x[T, C]; C: nat) -> y[T, C]
        y[t, c] = if c == 3 then x[t, 0] else if c != 5 then x[t, c + 1 - 1] else -x[t, c]"""),
    Case("even and odd", "pointwise", {"C": 7}, """
      op f(x[T, C]; C: nat) -> y[T, C]
        y[t, c] = if c % 2 == 1 then x[t, c - 1] else x[t, c]"""),
    Case("interleaved rotation", "pointwise", {"D": 8, "theta": 100}, """
      op f(x[T, D], pos[T]: index; D: nat, theta: real) -> y[T, D]
        let a[i] = pos[t] · freq(theta, D, i)
        y[t, i] = if i % 2 == 0 then x[t, i]·cos(a[i // 2]) - x[t, i + 1]·sin(a[i // 2])
          else x[t, i]·cos(a[i // 2]) + x[t, i - 1]·sin(a[i // 2])""", index={"pos": lambda n: (0, 1000)}),
    Case("rotation of the whole head", "pointwise", {"D": 8, "theta": 100}, """
      op f(x[T, D], pos[T]: index; D: nat, theta: real) -> y[T, D]
        let a[i] = pos[t] · freq(theta, D, i)
        let half = D // 2
        y[t, i] = if i < half then x[t, i]·cos(a[i]) - x[t, i + half]·sin(a[i])
          else x[t, i]·cos(a[i - half]) + x[t, i - half]·sin(a[i - half])""", index={"pos": lambda n: (0, 1000)}),
    Case("scale per half", "pointwise", {"C": 6}, """
      op f(x[T, C], s[2]; C: nat) -> y[T, C]
        y[t, c] = if c < C // 2 then s[0]·x[t, c] else s[1]·x[t, c]"""),
    Case("scale of a row in one piece, of an element in another", "pointwise", {"C": 4}, """
      op f(x[T, C], s[4]; C: nat) -> y[T, C]
        y[t, c] = if c == 2 then s[3]·x[t, c] else if c % 2 == 0 then x[t, c] else s[3]"""),
    Case("rows up to the length of another operand", "pointwise", {"C": 4}, """
      op f(x[T, C], n[B]: index; C: nat) -> y[T, C]
        y[t, c] = if t < B then x[t, c] else 0"""),
    Case("one number for some rows", "pointwise", {"C": 4}, """
      op f(x[T, C], s[3]; C: nat) -> y[T, C]
        y[t, c] = if t % 2 == 0 then s[1]·x[t, c] else x[t, c]"""),
    Case("scale of the row before, in some columns", "pointwise", {"C": 4}, """
      op f(x[T, C], s[T]; C: nat) -> y[T, C]
        y[t, c] = if c % 2 == 0 and t ≥ 1 then s[t - 1]·x[t, c] else x[t, c]"""),
    Case("either way from a table of rows", "gather", {"V": 4, "H": 3}, """
      op f(i[T]: index, w[V, H], c[T, H]; V: nat, H: nat) -> y[T, H]
        y[t, d] = if c[t, d] > 0 then w[i[t], d] else 2·w[i[t], d]""", index={"i": lambda n: (0, 3)}),
    Case("taken on one side only", "gather", {"V": 4, "H": 3}, """
      op f(i[T]: index, w[V, H]; V: nat, H: nat) -> y[T, H]
        y[t, d] = if d < 1 then 0 else if t > 1 then w[i[t], d] else 2·w[i[t], d]""", index={"i": lambda n: (0, 3)}),
    Case("rows taken by position of the sequence", "gather", {"H": 3}, """
      op f(x[T, H], n[T]: index; H: nat) -> y[T, H]
        y[t, d] = if n[t] < t then x[n[t], d] else x[t, d]""", index={"n": lambda n: (0, n["T"])}),
    Case("condition on the element before", "pointwise", {"C": 3}, """
      op f(x[T, C]; C: nat) -> y[T, C]
        y[t, c] = if t ≥ 1 and x[t - 1, c] > 0 then x[t, c] else -1"""),
    Case("no element before or a negative one", "pointwise", {"C": 3}, """
      op f(x[T, C]; C: nat) -> y[T, C]
        y[t, c] = if t < 1 or x[t - 1, c] < 0 then x[t, c] else x[t - 1, c]"""),
    Case("only where a comparison of real numbers says so", "pointwise", {"C": 3}, """
      op f(x[T, C]; C: nat) -> y[T, C]
        y[t, c] = if t / 2 ≥ 1 then x[t - 2, c] else x[t, c]"""),
    Case("twice under conditions", "pointwise", {"C": 3}, """
      op f(x[T, C], m[T, C]; C: nat) -> y[T, C]
        y[t, c] = (if t ≥ 1 then x[t - 1, c] else 0) + (if m[t, c] > 0 and t ≥ 1 then x[t - 1, c] else 0)
          + (if t < 1 or x[t - 1, c] < m[t, c] then 0 else if t ≥ 2 then x[t - 1, c]·x[t - 2, c] else 1)"""),
    Case("series", "pointwise", {"C": 3}, """
      def series(x) = Σ_{j < 4} x^j / (j + 1)
      op f(x[T, C]; C: nat) -> y[T, C]
        y[t, c] = series(x[t, c])"""),
    Case("width of the larger", "pointwise", {"A": 3, "B": 5}, """
      op f(x[T, A], z[T, B]; A: nat, B: nat) -> y[T, max(A, B)]
        y[t, c] = (if c < A then x[t, c] else 0) + (if c < B then z[t, c] else 0)"""),
    Case("clamped neighbour", "pointwise", {"C": 4}, """
      op f(x[T, C]; C: nat) -> y[T, C]
        y[t, c] = x[max(t - 1, 0), min(c + 1, C - 1)] - x[abs(t - 0), c]"""),
    Case("products of products", "pointwise", {"H": 4}, """
      op f(x[T, H], w[H]; H: nat) -> y[T, H]
        y[t, i] = Π_{j < H | j ≤ t} (x[t, j] + max(Π_k (x[t, k] + w[i]), if t > 1 then 1/3 else w[i]))"""),
    Case("sum over few", "pointwise", {"H": 3, "K": 2}, """
      op f(x[T, K, H], w[T, K]; H: nat, K: nat) -> y[T, H]
        y[t, i] = Σ_k w[t, k]·x[t, k, i]"""),
    Case("experts' rows added", "gather", {"H": 3, "K": 2, "V": 5}, """
      op f(e[T, K]: index, w[V, H]; H: nat, K: nat, V: nat) -> y[T, H]
        y[t, i] = Σ_k w[e[t, k], i]""", index={"e": lambda n: (0, 4)}),
)  # fmt: skip

STENCILS = (
    Case("convolution with its range", "pointwise", {"C": 3, "K": 4}, """
      op f(x[T, C], w[C, K]; C: nat, K: nat) -> y[T, C]
        y[t, c] = Σ_{j < K | t - (K - 1) + j ≥ 0} x[t - (K - 1) + j, c]·w[c, j]"""),
    Case("centred convolution", "pointwise", {"C": 2, "K": 3}, """
      op f(x[T, C], w[C, K], b[C]; C: nat, K: nat) -> y[T, C]
        y[t, c] = b[c] + Σ_j (if t - 1 + j ≥ 0 and t - 1 + j < T then x[t - 1 + j, c]·w[c, j] else 0)"""),
    Case("convolution along the row", "pointwise", {"C": 5}, """
      op f(x[T, C], w[2]; C: nat) -> y[T, C]
        y[t, c] = Σ_j (if c - j ≥ 0 then x[t, c - j]·w[j] else 0)"""),
    Case("windowed maximum", "pointwise", {"C": 3}, """
      op f(x[T, C]; C: nat) -> y[T, C]
        y[t, c] = x[t, c] - Max_{j < 3} (if t - j ≥ 0 then x[t - j, c] else x[t, c])"""),
)  # fmt: skip

LINEAR = (
    Case("linear with bias", "contraction", {"K": 5, "N": 3}, """
      op f(x[.., K], w[N, K], b[N]; K: nat, N: nat) -> y[.., N]
        y[.., n] = Σ_k x[.., k]·w[n, k] + b[n]""", lead=1),
    Case("linear with row scale", "contraction", {"K": 5, "N": 3}, """
      op f(x[.., K], s[..], w[N, K]; K: nat, N: nat) -> y[.., N]
        y[.., n] = s[..] · Σ_k x[.., k]·w[n, k]""", lead=2),
    Case("linear with scales inside the sum", "contraction", {"K": 5, "N": 3}, """
      op f(x[.., K], s[..], w[N, K], c[N]; K: nat, N: nat) -> y[.., N]
        y[.., n] = Σ_k s[..]·x[.., k]·w[n, k]·c[n]/2""", lead=1),
    Case("linear of a gated input", "contraction", {"K": 5, "N": 3}, """
      op f(x[.., K], g[.., K], w[N, K]; K: nat, N: nat) -> y[.., N]
        y[.., n] = Σ_k silu(g[.., k])·x[.., k]·w[n, k]""", lead=1),
    Case("linear with a scale per input", "contraction", {"K": 5, "N": 3}, """
      op f(x[.., K], w[N, K], s[K]; K: nat, N: nat) -> y[.., N]
        y[.., n] = -Σ_k w[n, k]·x[.., k]·s[k]""", lead=1),
    Case("gated halves", "contraction", {"K": 4, "I": 3}, """
      op f(x[.., K], a[I, K], b[I, K]; K: nat, I: nat) -> y[.., 2·I]
        y[.., n] = if n < I then silu(Σ_k x[.., k]·a[n, k]) else 2·Σ_j x[.., j]·b[n - I, j]""", lead=1),
    Case("squares beside products", "pointwise", {"K": 4, "I": 3}, """
      op f(x[.., K], a[I, K], b[I, K]; K: nat, I: nat) -> y[.., 2·I]
        y[.., n] = if n < I then Σ_k x[.., k]·x[.., k]·a[n, k] else Σ_k x[.., k]·b[n - I, k]""", lead=1),
    Case("padded columns", "contraction", {"K": 4, "N": 3}, """
      op f(x[.., K], w[N, K]; K: nat, N: nat) -> y[.., 2·N]
        y[.., n] = if n < N then Σ_k x[.., k]·w[n, k] else 0""", lead=1),
    Case("shifted rows", "contraction", {"K": 4, "N": 3}, """
      op f(x[T, K], w[N, K]; K: nat, N: nat) -> y[T, N]
        y[t, n] = if t ≥ 2 then Σ_k x[t - 2, k]·w[n, k] else 0"""),
    Case("linear of taken rows", "contraction", {"K": 4, "N": 3, "V": 5}, """
      op f(i[T]: index, x[V, K], w[N, K]; K: nat, N: nat, V: nat) -> y[T, N]
        y[t, n] = Σ_k x[i[t], k]·w[n, k]""", index={"i": lambda n: (0, 4)}),
)  # fmt: skip

ATTENTIONS = (
    masked("causal", "l ≤ pos[t]"),
    masked("no predicate", ""),
    masked("moved key", "l + 3 ≤ pos[t]"),
    masked("key on the right", "pos[t] ≥ l"),
    masked("distance", "0 ≤ pos[t] - l and pos[t] - l < 3"),
    masked("both sides of a key", "pos[t] - 2 < l and l < pos[t] + 2"),
    masked("not the own position", "l ≤ pos[t] and l != pos[t]"),
    masked("own position only", "l == pos[t]"),
    masked("sink and window", "l ≤ pos[t] and (l < 1 or pos[t] - 2 < l)"),
    masked("blocks", "l // 2 == pos[t] // 2"),
    masked("dilated", "l ≤ pos[t] and (pos[t] - l) % 2 == 0"),
    masked("position of the row", "l ≤ t"),
    masked("aligned at the end", "l ≤ L - T + t"),
    masked("nothing", "l < 0"),
    attention("capped score", """
      let g = h // (N // M)
      o[t, h, d] = Σ_l softmax_l(cap(5, 2·Σ_e q[t, h, e]·k[l, g, e]) | l ≤ pos[t]) · v[l, g, d]"""),
    attention("heads by remainder", """
      o[t, h, d] = Σ_l softmax_l(Σ_e q[t, h, e]·k[l, h % M, e] | l ≤ pos[t]) · v[l, h % M, d]"""),
    attention("one KV head", """
      o[t, h, d] = Σ_l softmax_l(Σ_e q[t, h, e]·k[l, 0, e] | l ≤ pos[t]) · v[l, 0, d]"""),
    attention("heads of their own", """
      o[t, h, d] = Σ_l softmax_l(Σ_e q[t, h, e]·k[l, h, e]) · v[l, h, d]""", M=6),
    attention("key before query", """
      let g = h // (N // M)
      o[t, h, d] = Σ_l v[l, g, d] · softmax_l(Σ_e k[l, g, e]·q[t, h, e] | l ≤ pos[t])"""),
    attention("negative", """
      let g = h // (N // M)
      o[t, h, d] = -Σ_l softmax_l(-(Σ_e q[t, h, e]·k[l, g, e]) | l ≤ pos[t]) · v[l, g, d]"""),
    attention("sign inside the product", """
      let g = h // (N // M)
      o[t, h, d] = Σ_l softmax_l(Σ_e -q[t, h, e]·k[l, g, e]/2 | l ≤ pos[t]) · (-v[l, g, d])"""),
    attention("scaled result", """
      let g = h // (N // M)
      o[t, h, d] = 1/3 · Σ_l 2 · softmax_l(Σ_e 3·q[t, h, e]·k[l, g, e]) · v[l, g, d]"""),
    attention("distance in the score", """
      let g = h // (N // M)
      o[t, h, d] = Σ_l softmax_l((Σ_e q[t, h, e]·k[l, g, e]) - (pos[t] - l)/4 | l ≤ pos[t]) · v[l, g, d]"""),
    attention("reversed head", """
      let g = h // (N // M)
      o[t, h, d] = Σ_l softmax_l(Σ_e q[t, h, D - 1 - e]·k[l, g, e] | l ≤ pos[t]) · v[l, g, D - 1 - d]"""),
    attention("decode", """
      let g = h // (N // M)
      o[b, h, d] = Σ_l softmax_l(Σ_e q[b, h, e]·k[b, l, g, e] | l < n[b]) · v[b, l, g, d]""", DECODE),
    attention("decode of the newest key last", """
      let g = h % M
      o[b, h, d] = Σ_l softmax_l(cap(3, Σ_e k[b, l, g, e]·q[b, h, e]) | n[b] - 4 ≤ l and l < n[b]) · v[b, l, g, d]""",
      DECODE),
)  # fmt: skip

USER = (*NORMS, *POINTWISE, *STENCILS, *LINEAR, *ATTENTIONS)
