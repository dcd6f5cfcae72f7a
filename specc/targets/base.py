"""What every target offers. Targets never import each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from specc.ir import Model
from specc.lowered import Lowered


class Target(Protocol):
    """A form that a model's nodes are generated in."""

    @property
    def name(self) -> str:
        """The name on the command line, and of the folder of its files."""

    def emit_model(self, model: Model, lowered: Sequence[Lowered], tiles: Path | None = None) -> Mapping[str, str]:
        """Texts of the model's files by path below the target's folder. Same arguments, same bytes.

        `lowered`: the kernels of every node, for a target that uses them; `tiles`: a table of the user's own.
        Raises SpecError where the target cannot generate a node.
        """
