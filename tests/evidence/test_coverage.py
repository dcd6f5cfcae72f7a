"""A result that is not written, or has another shape, is a fault."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch

from specc import pipeline
from specc.evidence.case import Case
from specc.evidence.check import Ran, Status, check_kernel
from specc.evidence.coverage import Incomplete, require_all, require_corners, require_heads
from specc.evidence.execute import TorchExecutor, TritonExecutor
from specc.kernels import Kernel
from specc.lowered import all_kernels, lower_each
from specc.targets.triton.emit import emit
from tests.evidence.planted import NODES, library

ROOT = Path(__file__).parents[2]
GEMMA4, TINY = ROOT / "specs" / "gemma4.spec", ROOT / "docs" / "examples" / "tiny.spec"

LEFT_OUT: dict[str, tuple[Path, str, str, str]] = {
    "the last block of columns": (
        TINY,
        "mlp_down",
        'triton.cdiv(96, config.tiles["BLOCK_N"]),)',
        'max(1, triton.cdiv(96, config.tiles["BLOCK_N"]) - 1),)',
    ),
    "the last head": (GEMMA4, "attn_qk_norm_sliding", "h_in = h < rows_1", "h_in = h < rows_1 - 1"),
    "the last row": (TINY, "norm1", "t_in = t < T", "t_in = t < T - 1"),
    "the last column of a wide result": (GEMMA4, "mlp_gate_up", "mask=m_in & n_in)", "mask=m_in & (n % 16 != 15))"),
}


def kernel_of(spec: Path, name: str) -> Kernel:
    (kernel,) = (k for k in all_kernels(lower_each(pipeline.load(spec))) if k.name == name)
    return kernel


@pytest.mark.parametrize("fault", LEFT_OUT)
def test_a_kernel_that_leaves_elements_out_is_refuted(fault: str) -> None:
    spec, name, old, new = LEFT_OUT[fault]
    kernel = kernel_of(spec, name)
    text = emit(kernel)
    assert old in text
    report = check_kernel(kernel, TritonExecutor({name: text.replace(old, new)}), examples=0)
    assert report.status is Status.REFUTED
    assert report.counterexample is not None and "written" in report.counterexample.fault


@dataclass(frozen=True)
class Cut(TorchExecutor):
    """Returns one column too few."""

    def run(self, kernel: Kernel, tensors: Mapping[str, torch.Tensor], case: Case) -> Ran:
        ran = super().run(kernel, tensors, case)
        return Ran({n: v[..., :-1] for n, v in ran.outputs.items()}, dict.fromkeys(ran.outputs))


@pytest.mark.parametrize("node", ["rmsnorm", "linear", "geluMul", "decodeGQA"])
def test_a_result_of_another_shape_is_refuted(node: str) -> None:
    report = check_kernel(NODES[node].kernel(library()), Cut(), examples=0)
    assert report.status is Status.REFUTED
    assert report.counterexample is not None and "shape" in report.counterexample.fault


def test_weights_rounded_in_float32_attention_are_refuted_at_true_constants() -> None:
    kernel = kernel_of(GEMMA4, "attn_core_sliding_decode")
    text = emit(kernel)
    assert "weight.to(v.dtype)" in text
    wrong = text.replace("weight.to(v.dtype)", "weight.to(tl.bfloat16).to(v.dtype)")
    report = check_kernel(kernel, TritonExecutor({kernel.name: wrong}), examples=0)
    assert report.status is Status.REFUTED


def box(*ranges: range) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    places = np.meshgrid(*(np.array(r) for r in ranges), indexing="ij")
    return np.stack([p.reshape(-1) for p in places], axis=1).astype(np.int64)


def test_coverage_rules_accept_whole_tiles_and_nothing_less() -> None:
    require_all("y", (2, 3), box(range(2), range(3)))
    require_heads("o", (2, 4, 8), box(range(2), range(1, 3), range(8)), 1, [1, 2])
    require_corners("y", (1, 128), np.concatenate([box(range(1), range(32)), box(range(1), range(96, 128))]))
    with pytest.raises(Incomplete):
        require_all("y", (2, 3), box(range(2), range(2)))
    with pytest.raises(Incomplete):
        require_heads("o", (2, 4, 8), box(range(2), range(1, 3), range(7)), 1, [1, 2])
    with pytest.raises(Incomplete):
        require_corners("y", (2, 128), box(range(1), range(128)))
    with pytest.raises(Incomplete):
        require_corners("y", (1, 128), np.concatenate([box(range(1), range(31)), box(range(1), range(97, 128))]))
