"""What every target offers. Targets never import each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from specc.ir import Model
from specc.kernels import Kernel


class Target(Protocol):
    """A form that a model's nodes are generated in."""

    @property
    def name(self) -> str:
        """The name on the command line, and of the folder of its files."""

    def emit_model(self, model: Model, kernels: Sequence[Kernel]) -> Mapping[str, str]:
        """Texts of the model's files by path below the target's folder. Same arguments, same bytes.

        Raises SpecError where the target cannot generate a kernel.
        """
