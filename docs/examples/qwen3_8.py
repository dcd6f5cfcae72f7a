"""The text path of Qwen/Qwen3.8-27B in plain PyTorch: gated DeltaNet token by token, and gated attention."""

import torch
from torch.nn.functional import linear, pad, silu, softplus


def build(config, tensors):
    return Qwen(config["text_config"], tensors)


class Qwen:
    def __init__(self, config, tensors):
        self.config = config
        self.tensors = tensors

    def __call__(self, tokens):
        """Logits [T, vocab], and the hidden states before the first layer and after each."""
        h = self.weight("embed_tokens.weight")[tokens]
        hidden = [h]
        for i, kind in enumerate(self.config["layer_types"]):
            mix = self.delta_net if kind == "linear_attention" else self.attention
            h = h + mix(f"layers.{i}.", self.norm(h, f"layers.{i}.input_layernorm"))
            h = h + self.mlp(f"layers.{i}.mlp.", self.norm(h, f"layers.{i}.post_attention_layernorm"))
            hidden.append(h)
        return linear(self.norm(h, "norm"), self.tensors["lm_head.weight"]), hidden

    def weight(self, name):
        return self.tensors["model.language_model." + name]

    def project(self, x, name):
        return linear(x, self.weight(name + ".weight"))

    def norm(self, x, name):
        return rms(x, self.config["rms_norm_eps"]) * (1 + self.weight(name + ".weight"))

    def mlp(self, name, x):
        gate, up = self.project(x, name + "gate_proj"), self.project(x, name + "up_proj")
        return self.project(silu(gate) * up, name + "down_proj")

    def attention(self, name, x):
        cfg, name = self.config, name + "self_attn."
        heads, kv_heads, width = cfg["num_attention_heads"], cfg["num_key_value_heads"], cfg["head_dim"]
        q, gate = self.project(x, name + "q_proj").view(-1, heads, 2 * width).chunk(2, -1)
        k = self.project(x, name + "k_proj").view(-1, kv_heads, width)
        v = self.project(x, name + "v_proj").view(-1, kv_heads, width)
        q = self.rope(self.norm(q, name + "q_norm"))
        k = self.rope(self.norm(k, name + "k_norm"))
        k, v = k.repeat_interleave(heads // kv_heads, 1), v.repeat_interleave(heads // kv_heads, 1)
        scores = torch.einsum("thd,lhd->htl", q, k) / width**0.5
        future = torch.ones(len(x), len(x), dtype=torch.bool).triu(1)
        o = torch.einsum("htl,lhd->thd", scores.masked_fill(future, float("-inf")).softmax(-1), v)
        return self.project((o * gate.sigmoid()).flatten(1), name + "o_proj")

    def rope(self, x):
        """Rotates the pairs (i, i + rot/2) of the first `rot` coordinates."""
        parameters = self.config["rope_parameters"]
        rot = round(x.shape[-1] * parameters["partial_rotary_factor"])
        frequency = parameters["rope_theta"] ** -(torch.arange(0, rot, 2).double() / rot)
        angle = torch.arange(len(x))[:, None, None] * frequency
        x1, x2, rest = x.split([rot // 2, rot // 2, x.shape[-1] - rot], -1)
        return torch.cat([x1 * angle.cos() - x2 * angle.sin(), x2 * angle.cos() + x1 * angle.sin(), rest], -1)

    def delta_net(self, name, x):
        cfg, name = self.config, name + "linear_attn."
        hk, hv = cfg["linear_num_key_heads"], cfg["linear_num_value_heads"]
        dk, dv = cfg["linear_key_head_dim"], cfg["linear_value_head_dim"]
        q, k, v = self.convolution(name, x).split([hk * dk, hk * dk, hv * dv], -1)
        q = unit(q.view(-1, hk, dk)).repeat_interleave(hv // hk, 1) / dk**0.5
        k = unit(k.view(-1, hk, dk)).repeat_interleave(hv // hk, 1)
        v = v.view(-1, hv, dv)
        beta = self.project(x, name + "in_proj_b").sigmoid()
        step = softplus(self.project(x, name + "in_proj_a") + self.weight(name + "dt_bias"))
        decay = torch.exp(-self.weight(name + "A_log").exp() * step)
        state = torch.zeros(hv, dk, dv)
        out = []
        for t in range(len(x)):
            state = state * decay[t, :, None, None]
            seen = torch.einsum("hkv,hk->hv", state, k[t])
            state = state + torch.einsum("hk,hv->hkv", k[t], (v[t] - seen) * beta[t, :, None])
            out.append(torch.einsum("hkv,hk->hv", state, q[t]))
        z = self.project(x, name + "in_proj_z").view(-1, hv, dv)
        o = rms(torch.stack(out), cfg["rms_norm_eps"]) * self.weight(name + "norm.weight") * silu(z)
        return self.project(o.flatten(1), name + "out_proj")

    def convolution(self, name, x):
        """Depthwise and causal, then SiLU."""
        w = self.weight(name + "conv1d.weight")
        x = pad(self.project(x, name + "in_proj_qkv").T, (w.shape[-1] - 1, 0))
        return silu(torch.conv1d(x[None], w, groups=len(w))[0].T)


def rms(x, eps):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)


def unit(x):
    return x * torch.rsqrt(x.pow(2).sum(-1, keepdim=True) + 1e-6)
