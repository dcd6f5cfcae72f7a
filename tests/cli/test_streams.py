"""What is printed can be printed: whatever the encoding of the terminal, and whatever is in a name."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

MODEL = "google/gemma-4-31B"


def specc(encoding: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    return subprocess.run([sys.executable, "-m", "specc", *arguments], capture_output=True, env=environment, timeout=60)


@pytest.mark.parametrize("encoding", ["ascii", "utf-8:strict"])
def test_a_page_is_printed_in_every_encoding(encoding: str) -> None:
    done = specc(encoding, "show", f"{MODEL}@1.0:layers[0].input_norm")
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"rmsnorm" in done.stdout


@pytest.mark.parametrize("option", [[], ["--json"]])
def test_a_name_that_is_no_unicode_is_spelt_out(option: list[str]) -> None:
    done = specc("utf-8", "show", "\udcff.spec", *option)
    assert done.returncode == 2 and b"Traceback" not in done.stderr
    if option:
        assert "\udcff.spec" in json.loads(done.stdout)["errors"][0]["message"]
    else:
        assert b"udcff.spec" in done.stderr
