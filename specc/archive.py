"""Arrays in a file, by names of the user's."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt


def write_arrays(file: BinaryIO, arrays: Mapping[str, npt.NDArray[Any]], packed: bool = False) -> None:
    """An .npz archive, in the order of `arrays`. `numpy.savez` takes names as keywords, and so not all of them. Raises
    OSError."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, np.asanyarray(array), allow_pickle=False)
