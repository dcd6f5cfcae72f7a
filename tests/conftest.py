"""Settings for all tests: the same examples every time in CI, elsewhere new ones and the seed for them."""

from __future__ import annotations

import os
import random
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # xdist has the cores already

import pytest  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402

SLOW_IS_FINE = [HealthCheck.too_slow]
settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True, suppress_health_check=SLOW_IS_FINE)
settings.register_profile("dev", deadline=None, print_blob=True, suppress_health_check=SLOW_IS_FINE)
PROFILE = "ci" if os.environ.get("CI") else "dev"
settings.load_profile(PROFILE)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Draws the seed of this run where none was asked for, so that the header can name it."""
    if PROFILE == "dev" and config.getoption("--hypothesis-seed", None) is None:
        config.option.hypothesis_seed = str(random.SystemRandom().randrange(2**32))


def pytest_report_header(config: pytest.Config) -> str:
    if PROFILE == "ci":
        return "examples: the same in every run (CI is set)"
    return f"examples: repeat them with --hypothesis-seed={config.getoption('--hypothesis-seed')}"


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """How far the cases of the fuzzer came, in all its tests together."""
    reports = [r for found in terminalreporter.stats.values() for r in found if getattr(r, "when", "") == "call"]
    figures = [value for r in reports for name, value in getattr(r, "user_properties", ()) if name == "fuzz"]
    if figures:
        from tests.fuzz.campaign import added_up

        terminalreporter.write_line(f"fuzz: {added_up(figures)}")
