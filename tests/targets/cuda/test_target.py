"""The CUDA files of a whole model."""

from __future__ import annotations

from specc.targets.base import Target
from specc.targets.cuda import target
from specc.targets.cuda.emit import SLOTS, TILED
from specc.targets.triton.emit import SLOTS as TRITON_SLOTS


def test_the_module_is_a_target() -> None:
    module: Target = target
    assert module.name == "cuda"


def test_every_schedule_that_triton_has_a_template_for_has_one_here() -> None:
    assert sorted((*SLOTS, *TILED)) == sorted(TRITON_SLOTS)
