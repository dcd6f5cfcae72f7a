"""specc: from a Model Spec to kernels, with evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from specc.api import Node, Spec, build, load
    from specc.diagnostics import SpecError

__version__ = "0.1.0"
__all__ = ["Node", "Spec", "SpecError", "__version__", "build", "load"]


def __getattr__(name: str) -> Any:
    """`specc.load` and the like, imported when first asked for: `import specc` alone loads nothing else."""
    if name not in __all__:
        raise AttributeError(f"module 'specc' has no attribute {name!r}")
    import specc.api

    return getattr(specc.api, name)
