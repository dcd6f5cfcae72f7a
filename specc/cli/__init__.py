"""The command line. Exit status: 0 fine, 1 a check failed, 2 bad usage or bad input."""

from specc.cli.main import main, run

__all__ = ["main", "run"]
