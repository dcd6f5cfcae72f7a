"""Options that several commands take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Report as JSON.")]
Tiles = Annotated[
    Path | None, typer.Option(metavar="FILE", help="A tile table whose rows come before the shipped ones.")
]
Gpu = Annotated[
    str | None, typer.Option(metavar="ARCH", help="Give kernels the tiles that they have on this GPU: sm_90.")
]
