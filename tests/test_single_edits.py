"""One constant of a shipped page is edited: exactly the files that show or compute with it are rewritten, and `compare`
names exactly the keys whose meaning changed.

What each edit must rewrite was derived from what names the constant: the page always; `config.json` where the
configuration has it; the module of the node in the reference; the weights for names and shapes; the kernels of the
node, and those whose offsets pass 2**31 now or no longer do; the CUDA header for the shape of an operand or a table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import pytest

from specc import pipeline
from specc.compare import Change, Effect, compare, compare_files
from specc.inputs import Options
from specc.ir import Model
from specc.parse_spec import parse_spec
from specc.resources import shipped
from specc.source import Source

SPEC = shipped("specs") / "gemma4.spec"


@dataclass(frozen=True)
class Edit:
    """In each line that starts with one of `lines` (blanks folded), `old` becomes `new`. `files`: names parted by
    blanks; `keys`: what `told` gives for each change."""

    lines: tuple[str, ...]
    old: str
    new: str
    files: str
    keys: tuple[str, ...]
    one_storage: tuple[str, ...] = ()
    """Files that stay: their kernels have one storage type for weights and activations."""


EDITS: dict[str, Edit] = {
    "eps of a norm in every layer": Edit(
        ("| post_ffn_norm |",), "eps=1e-6", "eps=1e-5",
        "README.md torch/nodes/trunk.py triton/post_ffn_norm.py",
        ("post_ffn_norm: constant eps",),
    ),
    "eps of the norm that the configuration names": Edit(
        ("| input_norm |",), "eps=1e-6", "eps=1e-5",
        "README.md config.json torch/nodes/trunk.py triton/input_norm.py",
        ("config text_config.rms_norm_eps", "input_norm: constant eps"),
    ),
    "eps of the last norm": Edit(
        ("| final_norm |",), "eps=1e-6", "eps=1e-5",
        "README.md torch/nodes/trunk.py triton/final_norm.py",
        ("final_norm: constant eps",),
    ),
    "eps of one variant": Edit(
        ("| attn.qk_norm | rmsnorm | sliding |",), "eps=1e-6", "eps=1e-5",
        "README.md torch/nodes/attn.py triton/attn_qk_norm_sliding.py",
        ("attn.qk_norm (sliding): constant eps",),
    ),
    "eps of the other variant": Edit(
        ("| attn.v_norm | rmsnormUnit | global |",), "eps=1e-6", "eps=1e-5",
        "README.md torch/nodes/attn.py triton/attn_v_norm_global.py",
        ("attn.v_norm (global): constant eps",),
    ),
    "theta of one class": Edit(
        ('sliding "',), "theta = 10000", "theta = 20000",
        "README.md config.json torch/nodes/attn.py triton/attn_rope_sliding.py",
        (
            "size sliding.theta",
            "config text_config.rope_parameters.sliding_attention.rope_theta",
            "attn.rope (sliding): constant theta",
        ),
    ),
    "theta of the other class": Edit(
        ('global "',), "theta = 1000000", "theta = 2000000",
        "README.md config.json torch/nodes/attn.py triton/attn_rope_global.py",
        (
            "size global.theta",
            "config text_config.rope_parameters.full_attention.rope_theta",
            "attn.rope (global): constant theta",
        ),
    ),
    "window": Edit(
        ('sliding "',), "window = 1024", "window = 512",
        "README.md config.json torch/nodes/attn.py"
        " triton/attn_core_sliding_decode.py triton/attn_core_sliding_prefill.py",
        ("size sliding.window", "config text_config.sliding_window", "attn.core (sliding): constant window"),
    ),
    "active of the sliding layers": Edit(
        ("| attn.rope | rope | sliding |",), "active=D/2", "active=D/4",
        "README.md cuda/gemma_4_31b.h torch/nodes/attn.py triton/attn_rope_sliding.py",
        ("attn.rope (sliding): constant active",),
    ),
    "active of the global layers": Edit(
        ("| attn.rope | rope | global |",), "active=D/8", "active=D/4",
        "README.md cuda/gemma_4_31b.h config.json torch/nodes/attn.py triton/attn_rope_global.py",
        (
            "config text_config.rope_parameters.full_attention.partial_rotary_factor",
            "attn.rope (global): constant active",
        ),
    ),
    "scale": Edit(
        ("| attn.core | decodeGQA | global |",), "scale=1", "scale=1/16",
        "README.md torch/nodes/attn.py triton/attn_core_global_decode.py triton/attn_core_global_prefill.py",
        ("attn.core (global): constant scale",),
    ),
    "softcap": Edit(
        ("| lm_head |",), "softcap=30", "softcap=50",
        "README.md config.json torch/nodes/trunk.py triton/lm_head.py",
        ("config text_config.final_logit_softcapping", "lm_head: constant softcap"),
    ),
    "point of the softcap": Edit(
        ("| lm_head |",), "softcap=30.0", "softcap=30",
        "config.json",
        ("config text_config.final_logit_softcapping",),
    ),
    "factor of the head": Edit(
        ("| lm_head |",), "mul=1", "mul=2",
        "README.md torch/nodes/trunk.py triton/lm_head.py",
        ("lm_head: constant mul",),
    ),
    "embedding scale": Edit(
        ("| embed |",), "mul=√hidden", "mul=64",
        "README.md torch/nodes/trunk.py triton/embed.py",
        ("embed: constant mul",),
    ),
    "factor of a residual": Edit(
        ("| attn_residual |",), "r=1", "r=1/2",
        "README.md torch/nodes/trunk.py triton/attn_residual.py",
        ("attn_residual: constant r",),
    ),
    "width of the MLP": Edit(
        ("inter =",), "21504", "20480",
        "README.md cuda/gemma_4_31b.h config.json torch/nodes/mlp.py torch/weights.py"
        " triton/mlp_act.py triton/mlp_down.py triton/mlp_gate_up.py",
        (
            "size inter",
            "config text_config.intermediate_size",
            "mlp.gate_up: constant N",
            "mlp.gate_up: weight w",
            "mlp.act: constant I",
            "mlp.down: constant K",
            "mlp.down: weight w",
        ),
    ),
    "vocabulary": Edit(
        ("vocab =",), "262144", "131072",
        "README.md cuda/gemma_4_31b.h config.json torch/config.py torch/nodes/trunk.py torch/weights.py"
        " triton/embed.py triton/lm_head.py",
        ("size vocab", "config text_config.vocab_size", "embed: weight w", "lm_head: weight w"),
    ),
    "heads": Edit(
        ("heads =",), "32", "64",
        "README.md cuda/gemma_4_31b.h config.json torch/layers.py torch/nodes/attn.py torch/weights.py"
        " triton/attn_core_global_decode.py triton/attn_core_global_prefill.py"
        " triton/attn_core_sliding_decode.py triton/attn_core_sliding_prefill.py"
        " triton/attn_o_proj_global.py triton/attn_o_proj_sliding.py"
        " triton/attn_qkv_proj_global.py triton/attn_qkv_proj_sliding.py"
        " triton/attn_qk_norm_sliding.py triton/attn_rope_sliding.py",
        (
            "size heads",
            "config text_config.num_attention_heads",
            *(
                f"{node} ({variant}): {what}"
                for variant in ("sliding", "global")
                for node, what in (
                    ("attn.qkv_proj", "constant N"),
                    ("attn.qkv_proj", "weight w"),
                    ("attn.qk_norm", "shape q x"),
                    ("attn.rope", "shape q x"),
                    ("attn.core", "constant heads"),
                    ("attn.o_proj", "constant K"),
                    ("attn.o_proj", "weight w"),
                )
            ),
        ),
    ),
    "KV heads of one class": Edit(
        ('global "',), "kv_heads = 4", "kv_heads = 8",
        "README.md cuda/gemma_4_31b.h config.json torch/config.py torch/layers.py torch/nodes/attn.py torch/weights.py"
        " triton/attn_core_global_decode.py triton/attn_core_global_prefill.py triton/attn_qkv_proj_global.py"
        " triton/attn_v_norm_global.py",
        (
            "size global.kv_heads",
            "state k_cache (global)",
            "state v_cache (global)",
            "config text_config.num_global_key_value_heads",
            "attn.qkv_proj (global): constant N",
            "attn.qkv_proj (global): weight w",
            "attn.qk_norm (global): shape k x",
            "attn.v_norm (global): shape v x",
            "attn.rope (global): shape k x",
            "attn.core (global): constant kv_heads",
        ),
    ),
    "predicates of the layers": Edit(
        ('sliding "', 'global "'), "i % 6", "(i + 1) % 6",
        "README.md config.json torch/config.py",
        ("layers sliding", "layers global", "config text_config.layer_types"),
    ),
    "number of layers": Edit(
        ("layers ",), "60", "66",
        "README.md config.json torch/config.py",
        (
            "layers count", "layers sliding", "layers global",
            "config text_config.num_hidden_layers", "config text_config.layer_types",
        ),
    ),
    "label of a class": Edit(
        ('global "',), '"full attention"', '"global attention"',
        "README.md",
        ("layers label of global",),
    ),
    "tokens at once": Edit(
        ("T in",), "262144", "131072",
        "README.md"
        " triton/attn_core_global_prefill.py triton/attn_o_proj_global.py triton/attn_qk_norm_global.py"
        " triton/attn_qk_norm_sliding.py triton/attn_qkv_proj_sliding.py triton/attn_rope_global.py"
        " triton/attn_v_norm_sliding.py",
        ("domain T",),
    ),
    "sequences at once": Edit(("B in",), "256", "128", "README.md", ("domain B",)),
    "page size": Edit(("page",), "16", "32", "README.md", ("domain page",)),
    "storage of the cache": Edit(
        ("cache ",), "bfloat16", "float16", "README.md torch/config.py", ("profile cache",)
    ),
    "a rounding": Edit(
        ("round embed.mul",), "weight", "activation",
        "README.md torch/nodes/trunk.py triton/embed.py",
        ("profile round embed.mul",), one_storage=("cuda/embed.cu",),
    ),
    "name of a checkpoint tensor": Edit(
        ("| input_norm |",), "input_layernorm", "first_layernorm",
        "README.md torch/weights.py",
        ("input_norm: weight w",),
    ),
    "tied embedding": Edit(
        ("| lm_head |",), "True | hn -> logits | w[vocab, hidden] = tied embed.w",
        'False | hn -> logits | w[vocab, hidden] = "head.weight"',
        "README.md config.json torch/weights.py",
        (
            "config tie_word_embeddings", "config text_config.tie_word_embeddings",
            "lm_head: constant tied", "lm_head: weight w",
        ),
    ),
    "about": Edit(
        ("about",), "sandwich norms", "norms on both sides", "README.md torch/model.py", ("model about",)
    ),
    "a value of the configuration": Edit(
        ("text_config.attention_bias",), "False", "True", "config.json", ("config text_config.attention_bias",)
    ),
}  # fmt: skip


def edited(edit: Edit) -> str:
    """The page with the edit, which must fit once in each of its lines."""
    fits, lines = 0, []
    for line in SPEC.read_text(encoding="utf-8").splitlines():
        flat = " ".join(line.split())
        if flat.startswith(edit.lines):
            assert flat.count(edit.old) == 1, flat
            fits, line = fits + 1, "  " * line.startswith(" ") + flat.replace(edit.old, edit.new)
        lines.append(line)
    assert fits == len(edit.lines)
    return "\n".join(lines) + "\n"


def compiled(text: str) -> tuple[Model, Mapping[str, str]]:
    model = pipeline.check(SPEC, parse_spec(Source(str(SPEC), text)))
    return model, pipeline.files(model, pipeline.lower(model), Options())


@cache
def before() -> tuple[Model, Mapping[str, str]]:
    return compiled(SPEC.read_text(encoding="utf-8"))


def in_every_target(names: Sequence[str], files: Mapping[str, str]) -> list[str]:
    """`names`, and for each Triton kernel among them the CUDA file of that kernel, where it has one."""
    twins = [n.replace("triton/", "cuda/").replace(".py", ".cu") for n in names if n.startswith("triton/")]
    return [*names, *(n for n in twins if n in files)]


def told(change: Change) -> str:
    """`attn.rope (sliding): constant theta`, `size hidden`."""
    _, colon, node = change.key.partition(":")
    variant = f" ({change.variant})" if change.variant else ""
    return f"{node.removeprefix('layers[*].')}{variant}{colon} {change.kind} {change.name}".strip()


def test_there_are_enough_edits_and_no_two_are_one() -> None:
    assert len(EDITS) >= 20
    assert len({edited(e) for e in EDITS.values()}) == len(EDITS)


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_rewrites_exactly_its_files_and_is_told_by_its_keys(name: str) -> None:
    model, files = before()
    new_model, new_files = compiled(edited(EDITS[name]))
    touched = compare_files(files, new_files)
    assert [t.name for t in touched] == sorted(
        {*in_every_target(EDITS[name].files.split(), new_files)} - {*EDITS[name].one_storage}
    )
    assert {t.effect for t in touched} == {Effect.REWRITTEN}
    changes = compare(model, new_model)
    assert sorted(map(told, changes)) == sorted(EDITS[name].keys)
    assert all(c.old != c.new for c in changes)
    assert {c.key.partition(":")[0] for c in changes} == {f"{model.key}@{model.version}"}
