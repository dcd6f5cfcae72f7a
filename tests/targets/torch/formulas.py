"""Formulas that no shipped op has: titles after `##`, each with the ops and functions of a library."""

from __future__ import annotations

TEXT = """
## head by remainder
op f(q[T, 6, D], k[L, 2, D]) -> s[T, 6, L]
  s[t, h, l] = Σ_e q[t, h, e] · k[l, h % 2, e]
## head by quotient that leaves a rest
op f(q[T, 5, D], k[L, 3, D]) -> s[T, 5, L]
  s[t, h, l] = Σ_e q[t, h, e] · k[l, h // 2, e]
## head map of one of two reads
op f(k[L, 2], q[6, L]) -> s[6, L]
  s[h, l] = q[h, l] · k[l, h // 3] + k[l, 1]
## transposed
op f(x[T, D]) -> y[D, T]
  y[i, t] = 2 · x[t, i]
## three axes turned
op f(x[T, C, D]) -> y[D, T, C]
  y[i, t, c] = x[t, c, i] + x[t, 0, i]
## diagonal
op f(x[N, N]) -> y[N]
  y[i] = x[i, i]
## diagonal of a sum
op f(x[N, N, D], w[N, D]) -> y[N]
  y[i] = Σ_j x[i, i, j] · w[i, j]
## one row
op f(x[T, D], w[3]) -> y[T, D]
  y[t, i] = x[0, i] + w[2]
## spread over rows
op f(x[T, D], w[D]) -> y[T, D]
  y[t, i] = w[i]
## spread over columns
op f(x[T, D], s[T]) -> y[T, D]
  y[t, i] = s[t]
## a number
op f(x[T, D]) -> y[T, D]
  y[t, i] = 1/3
## indices alone
op f(x[T, D]) -> y[T, D]
  y[t, i] = t / 3 + i ^ 2 - i % 2 + √(i + 1)
## index times data
op f(x[T, D]) -> y[T, D]
  y[t, i] = x[t, i] · (i / 3) + x[t, i] · t
## table of two indices
op f(x[T, 4, 6]) -> y[T, 4, 6]
  y[t, h, i] = x[t, h, i] · cos(i · h / 7)
## table turned
op f(x[T, 6, 4]) -> y[T, 6, 4]
  y[t, i, h] = x[t, i, h] · exp(-(h · i + 2 · h) / 7)
## product
op f(x[T, D]) -> y[T]
  y[t] = Π_j (1 + x[t, j] / 9)
## product where
op f(x[T, D], n[T]: index) -> y[T]
  y[t] = Π_{j < D | j < n[t]} x[t, j]
## largest
op f(x[T, D]) -> y[T, D]
  y[t, i] = x[t, i] - Max_j x[t, j]
## largest where none is
op f(x[T, D], n[T]: index) -> y[T]
  y[t] = exp(Max_{j < D | j < n[t] - 3} x[t, j])
## sum where
op f(x[T, D], n[T]: index) -> y[T]
  y[t] = Σ_{j < D | j < n[t] or j == 4} x[t, j] · x[t, j]
## sum where not
op f(x[T, D], n[T]: index) -> y[T]
  y[t] = Σ_{j < D | not (j < n[t] and j != 1)} x[t, j]
## sum of what does not move
op f(x[T, D]) -> y[T, D]
  y[t, i] = Σ_{j < 3} x[t, i] + Σ_{j < D} 2
## count
op f(x[T, D], n[T]: index) -> y[T]
  y[t] = Σ_{j < D | j < n[t]} 1
## power of what does not move
op f(x[T, D]) -> y[T, D]
  y[t, i] = Π_{j < 3} x[t, i]
## sum over the first axis
op f(x[T, D]) -> y[D]
  y[i] = Σ_t x[t, i]
## sum of a sum
op f(x[T, C, D]) -> y[T]
  y[t] = Σ_c (Σ_j x[t, c, j] ^ 2) ^ 2
## sums of two indices
op f(x[T, C, D], w[C, D]) -> y[T]
  y[t] = Σ_c Σ_j x[t, c, j] · w[c, j]
## signs and divisors in a sum
op f(x[T, D], w[D], s[T]) -> y[T]
  y[t] = Σ_j -x[t, j] · w[j] · s[t] / D / (1 + s[t] ^ 2)
## three factors
op f(x[T, D], w[D], v[T, D]) -> y[T]
  y[t] = Σ_j x[t, j] · w[j] · v[t, j]
## a factor that is a function
op f(x[T, D], w[N, D]) -> y[T, N]
  y[t, n] = Σ_j silu(x[t, j]) · exp(w[n, j])
## a factor that is an index
op f(x[T, D]) -> y[T]
  y[t] = Σ_j x[t, j] · j
## a factor with a sum in it
op f(x[T, D], w[N, D]) -> y[T, N]
  y[t, n] = Σ_j (x[t, j] / (1 + Σ_i x[t, i] ^ 2)) · w[n, j]
## one before
op f(x[T, D]) -> y[T, D]
  y[t, i] = if t >= 1 then x[t - 1, i] else 0
## one after
op f(x[T, D]) -> y[T, D]
  y[t, i] = if t + 1 < T then x[t + 1, i] - x[t, i] else x[t, i]
## both sides
op f(x[T, 7]) -> y[T, 7]
  y[t, i] = (if i > 0 then x[t, i - 1] else 0) + (if i < 6 then x[t, i + 1] else 0)
## middle
op f(x[T, 9]) -> y[T, 9]
  y[t, i] = if 2 <= i < 5 then -x[t, i] else x[t, 8 - i]
## even and odd
op f(x[T, 6]) -> y[T, 6]
  y[t, i] = if i % 2 == 0 then x[t, i + 1] else x[t, i - 1]
## many cases
op f(x[T, 40]) -> y[T, 40]
  y[t, i] = if i % 2 == 0 then x[t, i] else -x[t, i - 1]
## case that reads an index
op f(x[T, D], n[T]: index) -> y[T, D]
  y[t, i] = if i < n[t] then x[t, i] else x[0, 0]
## case in an index
op f(x[T, 6]) -> y[T, 6]
  y[t, i] = x[t, if i < 2 then 5 - i else i - 2]
## case on data
op f(x[T, D]) -> y[T, D]
  y[t, i] = if x[t, i] > 0 then x[t, i] else x[t, i] / 8
## case of two numbers
op f(x[T, D]) -> y[T, D]
  y[t, i] = x[t, i] · (if i < 2 then 1/10 else 7/10)
## cases on two axes
op f(x[4, 6]) -> y[4, 6]
  y[t, i] = if t < 2 then (if i < 3 then x[t, i + 3] else 0) else (if i < 1 then x[t - 2, i] else 1)
## cases on the first axis
op f(x[6, D]) -> y[6, D]
  y[t, i] = if t < 2 then x[t + 4, i] else x[t - 2, i]
## gather in the middle
op f(w[C, V, D], n[T]: index) -> y[T, C, D]
  y[t, c, i] = w[c, n[t], i] · 2
## gather at the end
op f(w[D, V], n[T]: index) -> y[T, D]
  y[t, i] = w[i, n[t]]
## two gathers
op f(w[9, 9, D], n[T]: index, m[T]: index) -> y[T, D]
  y[t, i] = w[n[t], m[t], i]
## gathers over two axes
op f(w[9, 9], n[T]: index, m[B]: index) -> y[B, T]
  y[b, t] = w[n[t], m[b]]
## gather of a gather
op f(w[9, D], n[9]: index, m[T]: index) -> y[T, D]
  y[t, i] = w[n[m[t] % 9], i]
## gather by two axes
op f(w[9, D], n[T, B]: index) -> y[B, D, T]
  y[b, i, t] = w[n[t, b], i]
## gather in a sum
op f(w[9, D], n[T]: index, x[T, D]) -> y[T]
  y[t] = Σ_j w[n[t], j] · x[t, j]
## gather of a point
op f(w[9, 3], n[T]: index) -> y[T]
  y[t] = w[n[t], 1]
## shift by data
op f(x[T, 20], n[T]: index) -> y[T, 5]
  y[t, i] = x[t, i + n[t]]
## steps of two
op f(x[T, 12]) -> y[T, 6]
  y[t, i] = x[t, 2 · i] · x[t, 2 · i + 1]
## back to front
op f(x[T, 7]) -> y[T, 7]
  y[t, i] = x[t, 6 - i]
## row of a pair
op f(x[12, D]) -> y[4, 3, D]
  y[a, b, i] = x[3 · a + b, i]
## a let in two frames
op f(x[T, D], w[T, D, D]) -> y[T, D]
  let n[i] = x[t, i] / √(Σ_j x[t, j] ^ 2 + 1)
  y[t, i] = n[i] + Σ_k n[k] · w[t, i, k]
## a let turned
op f(x[D, D]) -> y[D, D]
  let a[i, j] = exp(x[i, j] / 4)
  y[i, j] = a[i, j] - a[j, i]
## two results
op f(x[T, D]) -> y[T, D], s[T]
  let m = Σ_j x[t, j] / D
  y[t, i] = x[t, i] - m
  s[t] = m
## layer norm
op f(x[.., H], w[H]; H: nat = 6) -> y[.., H]
  let m = Σ_j x[.., j] / H
  let v = Σ_j (x[.., j] - m) ^ 2 / H
  y[.., i] = (x[.., i] - m) / √(v + 1e-5) · w[i]
## squared relu gate
op f(gu[.., 2 · I]; I: nat = 5) -> y[.., I]
  y[.., i] = max(gu[.., i], 0) ^ 2 · gu[.., I + i]
## softmax of all
op f(s[T, L]) -> p[T, L]
  p[t, l] = softmax_l(s[t, l])
## softmax over the first axis
op f(s[L, T], n[T]: index) -> p[L, T]
  p[l, t] = softmax_l(s[l, t] | l < n[t])
## softmax squared
op f(s[T, L], v[L, D]) -> y[T, D]
  y[t, d] = Σ_l softmax_l(s[t, l]) ^ 2 · v[l, d]
## softmax of all times values
op f(s[T, L], v[L, D]) -> y[T, D]
  y[t, d] = Σ_l softmax_l(s[t, l]) · v[l, d]
## softmax times two
op f(s[T, L], v[L, D], u[L, D], n[T]: index) -> y[T, D]
  y[t, d] = Σ_l softmax_l(s[t, l] | l < n[t]) · v[l, d] · u[l, d]
## named softmax
op f(s[T, L], v[L, D], n[T]: index) -> y[T, D]
  let p[l] = softmax_l(s[t, l] | l >= n[t])
  y[t, d] = Σ_l p[l] · v[l, d]
## softmax that sees by data
op f(s[T, L], v[L, D]) -> y[T, D]
  y[t, d] = Σ_l softmax_l(s[t, l] | s[t, l] > 0) · v[l, d]
## softmax with a bias
op f(s[T, L], b[L], v[L]) -> y[T]
  y[t] = Σ_l softmax_l(s[t, l] + b[l] | true_before(l, t)) · v[l]
def true_before(a: nat, b: nat) = a <= b
## softmax alone in a sum
op f(s[T, L], n[T]: index) -> y[T]
  y[t] = Σ_l softmax_l(s[t, l] | l < n[t] - 3)
## extremes
op f(x[T, D], w[D]) -> y[T, D]
  y[t, i] = max(min(x[t, i], 1/2), w[i]) + min(-1/4, x[t, i]) + abs(w[i])
## extremes of indices
op f(x[T, 6]) -> y[T, 6]
  y[t, i] = x[t, max(i - 2, 0)] + x[t, min(i + 1, 5)]
## functions
op f(x[T, D]) -> y[T, D]
  y[t, i] = softplus(x[t, i]) + expm1(x[t, i]) + log1p(x[t, i] ^ 2) + log(2) + tanh(π) + sin(x[t, i])
## a function with an index
op f(x[T, D]) -> y[T, D]
  y[t, i] = scaled(x[t, i], i) - scaled(2, 3)
def scaled(x, i: nat) = x · √(i + 1/2)
## names that Python has
op f(lambda[T, D], p[D], torch[T]) -> l[T, D]
  let p2 = p[i] · torch[t]
  let math = p2 + 1
  l[t, i] = lambda[t, i] · math
## names that meet
op f(silu[T, D], k[D]) -> t[T, D]
  t[t, k] = silu(silu[t, k]) · k[k] · k
## a sum that starts from something
op f(x[T, D]) -> y[T, D]
  rec S[t < T, i < D] from i + 1/2 = S[t - 1, i] / 2 + x[t, i]
  y[t, i] = S[t, i]
## a recurrence read elsewhere
op f(x[T, D]) -> y[T, D]
  rec S[t < T, i < D] from 0 = S[t - 1, i] / 2 + x[t, i]
  y[t, i] = S[T - 1, i] - S[t, i]
## a recurrence and something else
op f(x[T, D], w[D]) -> y[T], z[T, D]
  rec S[t < T] from 1 = S[t - 1] · 9/10 + Σ_j x[t, j] · w[j]
  y[t] = S[t]
  z[t, i] = x[t, i] + w[i]
## a recurrence with a case
op f(x[T, D]) -> y[T, D]
  rec S[t < T, i < D] from 0 = (if t >= 2 then x[t - 2, i] else 1) + S[t - 1, i] / 2
  y[t, i] = S[t, i]
"""


def _parts() -> dict[str, str]:
    found: dict[str, str] = {}
    for part in TEXT.split("## ")[1:]:
        title, body = part.split("\n", 1)
        found[title] = body
    return found


FORMULAS = _parts()
