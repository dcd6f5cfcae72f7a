"""`python -m specc`, and the `specc` command."""

import gc
import sys

INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells have it."""

ALLOCATIONS = 100_000
"""After how many objects Python looks for cycles. Trees have none, and looking for them as often as it does by itself
takes a twentieth of a build."""


def main() -> None:
    """Runs the command; Ctrl-C ends it without a word, also while it is still loading."""
    gc.set_threshold(ALLOCATIONS)
    try:
        from specc.cli import main as command

        command()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
