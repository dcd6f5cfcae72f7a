# ruff: noqa: E501
"""A small Model Spec that has every feature, for tests that break it in one place."""

MINI = """\
model toy/mini @ 1.0
about "A toy."

domain
  T in [1, 64] "tokens"
  B in [1, 4] "sequences"
  S in [1, 64] "cached positions"
  page = 16

sizes
  vocab = 11
  hidden = 8
  heads = 4

layers 4
  local "windowed" where i % 2 == 0: D = 4, kv_heads = 2, window = 3
  full where i % 2 == 1: D = 6, kv_heads = 1

inputs
  tokens[T]: index
  pos[T]: index
  seq_lens[B]: index

stream h[T, hidden] from h0 then h1
output logits

state
  k_cache[S, kv_heads, D]
  v_cache[S, kv_heads, D]

checkpoint "m." layers "m.layers.{i}."

nodes
  | Node   | Op Spec          | Layers | Constants                             | Wires | Weights |
  | embed  | embed            | -      | mul=√hidden                           | tokens -> h0 | w[vocab, hidden] = "embed" |
  | qkv    | linear           | local  | K=hidden, N=(heads + 2·kv_heads)·D    | h -> q[T, heads, D], k[T, kv_heads, D], v[T, kv_heads, D] | w[N, K] = "q"[heads·D] ++ "kv"[2·kv_heads·D] |
  | norm   | rmsnorm          | local  | D, eps=1e-6                           | q: q[.., D] -> qn with w=wq; k: k -> kn with w=wk | wq[D] = "wq"; wk[D] = "wk" |
  | core   | slidingDecodeGQA | local  | D, heads, kv_heads, scale=1, window   | qn, k_cache + kn, v_cache + v -> o | |
  | o_proj | linear           | local  | K=heads·D, N=hidden                   | o -> a | w[N, K] = "o" |
  | qkv    | linear           | full   | K=hidden, N=(heads + kv_heads)·D      | h -> q[T, heads, D], k[T, kv_heads, D] | w[N, K] = "q"[heads·D] ++ "k"[kv_heads·D] |
  | core   | decodeGQA        | full   | D, heads, kv_heads, scale=1/√D        | q, k_cache + k, v_cache + k -> o | |
  | o_proj | linear           | full   | K=heads·D, N=hidden                   | o -> a | w[N, K] = "o" |
  | add    | residual         | all    | H=hidden, r=0.5, layer_scalar=True    | h, a -> h1 | s[1] = "scale" |
  | out    | rmsnorm          | -      | H=hidden, eps=1e-6                    | h -> hn | w[H] = "norm" |
  | head   | lmHead           | -      | softcap=30, tied=True                 | hn -> logits | w[vocab, hidden] = tied embed.w |

profile
  weight bfloat16
  activation bfloat16
  cache bfloat16
  accumulator float32
  round embed.mul to weight
  round softmax to cache

config
  vocab_size = vocab
  layer_types = each(local: "sliding", full: "full")
  window = local.window
  eps = 1e-6
"""
