"""google/gemma-3-270m in plain PyTorch, for `specc verify google/gemma-3-270m docs/examples/gemma3.py`."""

import torch
from torch.nn.functional import gelu, linear


def build(config, tensors):
    return Gemma3(config, tensors)


class Gemma3:
    def __init__(self, config, tensors):
        self.config = config
        self.tensors = tensors

    def __call__(self, tokens):
        """Logits [T, vocab], and the hidden states before the first layer and after each."""
        logits, hidden, _ = self.run(tokens, [None] * self.config["num_hidden_layers"])
        return logits, hidden

    def step(self, tokens, cache):
        """The same for tokens that continue those of a cache; None for an empty one."""
        logits, _, cache = self.run(tokens, cache or [None] * self.config["num_hidden_layers"])
        return logits, cache

    def run(self, tokens, cache):
        cfg = self.config
        embedding = self.tensors["model.embed_tokens.weight"]
        h = embedding[tokens] * cfg["hidden_size"] ** 0.5
        hidden, renewed = [h], []
        for i, kind in enumerate(cfg["layer_types"]):
            attention, past = self.attention(i, kind, self.norm(h, f"layers.{i}.input_layernorm"), cache[i])
            h = h + self.norm(attention, f"layers.{i}.post_attention_layernorm")
            mlp = self.mlp(i, self.norm(h, f"layers.{i}.pre_feedforward_layernorm"))
            h = h + self.norm(mlp, f"layers.{i}.post_feedforward_layernorm")
            hidden.append(h)
            renewed.append(past)
        return linear(self.norm(h, "norm"), embedding), hidden, renewed

    def project(self, x, name):
        return linear(x, self.tensors[f"model.{name}.weight"])

    def norm(self, x, name):
        w = self.tensors[f"model.{name}.weight"]
        x32 = x.float()
        x32 = x32 * torch.rsqrt(x32.pow(2).mean(-1, keepdim=True) + self.config["rms_norm_eps"])
        return (x32 * (1 + w.float())).to(x.dtype)

    def mlp(self, i, x):
        gate = self.project(x, f"layers.{i}.mlp.gate_proj")
        up = self.project(x, f"layers.{i}.mlp.up_proj")
        return self.project(gelu(gate, approximate="tanh") * up, f"layers.{i}.mlp.down_proj")

    def attention(self, i, kind, x, past):
        cfg = self.config
        heads, kv_heads, width = cfg["num_attention_heads"], cfg["num_key_value_heads"], cfg["head_dim"]
        q = self.project(x, f"layers.{i}.self_attn.q_proj").view(-1, heads, width)
        k = self.project(x, f"layers.{i}.self_attn.k_proj").view(-1, kv_heads, width)
        v = self.project(x, f"layers.{i}.self_attn.v_proj").view(-1, kv_heads, width)
        start = 0 if past is None else len(past[0])
        pos = torch.arange(start, start + len(x))
        theta = cfg["rope_parameters"][kind]["rope_theta"]
        q = rope(self.norm(q, f"layers.{i}.self_attn.q_norm"), pos, theta)
        k = rope(self.norm(k, f"layers.{i}.self_attn.k_norm"), pos, theta)
        if past is not None:
            k, v = torch.cat([past[0], k]), torch.cat([past[1], v])
        scores = torch.einsum("thd,lhd->htl", q, k.repeat_interleave(heads // kv_heads, 1))
        scores = scores * cfg["query_pre_attn_scalar"] ** -0.5
        visible = self.visible(kind, pos[:, None] - torch.arange(len(k)))
        weights = scores.masked_fill(~visible, float("-inf")).softmax(-1)
        o = torch.einsum("htl,lhd->thd", weights, v.repeat_interleave(heads // kv_heads, 1))
        return self.project(o.flatten(1), f"layers.{i}.self_attn.o_proj"), (k, v)

    def visible(self, kind, distance):
        """Which keys a query sees, by how many positions they are back."""
        if kind == "sliding_attention":
            return (distance >= 0) & (distance < self.config["sliding_window"])
        return distance >= 0


def rope(x, pos, theta):
    """Rotates the pairs (i, i + width/2) of [T, heads, width]."""
    half = x.shape[-1] // 2
    angle = pos[:, None, None] * theta ** -(torch.arange(half, dtype=torch.float32) / half)
    x1, x2 = x[..., :half], x[..., half:]
    return torch.cat([x1 * angle.cos() - x2 * angle.sin(), x2 * angle.cos() + x1 * angle.sin()], -1)
