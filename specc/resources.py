"""Where the shipped specs, op libraries and templates lie: beside the package, or inside an installed wheel."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).parent


def shipped(folder: str) -> Path:
    """Path of `specs` or `templates`. Raises FileNotFoundError for a broken installation."""
    for base in (_PACKAGE / "_data", _PACKAGE.parent):
        if (base / folder).is_dir():
            return base / folder
    raise FileNotFoundError(f"specc is installed without its `{folder}` folder")
