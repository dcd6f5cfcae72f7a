"""Model files that are right only where two values of the model are one are not taken for right."""

from __future__ import annotations

from pathlib import Path

import pytest

from specc.diagnostics import SpecError
from specc.verify.draw import draw_tokens, draw_weights
from specc.verify.judge import Text
from specc.verify.user import Bounds, run_file
from specc.verify.user_report import Case, Findings, assess
from specc.verify.whole import Whole
from tests.verify.models import SEED, reduced

QWEN3 = """\
import torch
from torch.nn.functional import linear, rms_norm, scaled_dot_product_attention, silu

def build(config, tensors):
    heads, kv_heads, D = (config[k] for k in ("num_attention_heads", "num_key_value_heads", "head_dim"))

    def norm(x, name):
        return rms_norm(x, x.shape[-1:], tensors[f"model.{name}.weight"], config["rms_norm_eps"])

    def rope(x):
        steps = torch.arange(D // 2, dtype=x.dtype) * 2 / D
        angle = torch.arange(len(x))[:, None, None] * config["rope_theta"] ** -steps
        a, b = x.chunk(2, -1)
        return torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], -1)

    def layer(h, at):
        def proj(x, name):
            return linear(x, tensors[f"model.{at}.{name}_proj.weight"])

        x = norm(h, at + ".input_layernorm")
        q, k, v = (proj(x, f"self_attn.{n}").unflatten(-1, (-1, D)) for n in "qkv")
        q, k = rope(norm(q, at + ".self_attn.q_norm")), rope(norm(k, at + ".self_attn.k_norm"))
        group = heads // kv_heads
        k, v = (t.repeat_interleave(group, 1) for t in (k, v))
        q, k, v = (t.transpose(0, 1) for t in (q, k, v))
        o = scaled_dot_product_attention(q, k, v, is_causal=True, scale=D**-0.5)
        h = h + proj(o.transpose(0, 1).flatten(1), "self_attn.o")
        m = norm(h, at + ".post_attention_layernorm")
        return h + proj(silu(proj(m, "mlp.gate")) * proj(m, "mlp.up"), "mlp.down")

    def model(tokens):
        h = tensors["model.embed_tokens.weight"][tokens]
        for i in range(config["num_hidden_layers"]):
            h = layer(h, f"layers.{i}")
        return linear(norm(h, "norm"), tensors["model.embed_tokens.weight"])

    return model
"""


def judged(folder: Path, text: str) -> Findings:
    path = folder / "qwen3.py"
    path.write_text(text, encoding="utf-8")
    spec = reduced("qwen3_0_6b").spec
    weights = draw_weights(spec.model, (SEED, 0))
    given = Text(0, draw_tokens(spec.model, 5, (SEED, 0, 0)), 4)
    run = run_file(path, spec.model, [weights], [[given]], Bounds())
    return assess(spec, [Case(Whole(spec.model, weights), given, run.answers[0][0])], seconds=0.0)


def test_the_right_file_passes(tmp_path: Path) -> None:
    assert judged(tmp_path, QWEN3).ok


def test_a_scale_of_1_over_heads_is_refuted(tmp_path: Path) -> None:
    assert QWEN3.count("scale=D**-0.5") == 1
    assert not judged(tmp_path, QWEN3.replace("scale=D**-0.5", "scale=1 / heads")).ok


def test_keys_repeated_for_each_key_head_are_refused(tmp_path: Path) -> None:
    assert QWEN3.count("group = heads // kv_heads") == 1
    with pytest.raises(SpecError, match="E530"):
        judged(tmp_path, QWEN3.replace("group = heads // kv_heads", "group = kv_heads"))
