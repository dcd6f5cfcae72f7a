"""`python -m tests.fuzz FIRST [COUNT]`: runs the cases of seeds; one that fails is cut down and shown."""

from __future__ import annotations

import sys

from tests.fuzz.campaign import report, run_seeds

first, count = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
print(report(run_seeds(range(first, first + count))))
