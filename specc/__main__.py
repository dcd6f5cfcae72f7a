"""`python -m specc`, and the `specc` command."""

import sys

INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells have it."""


def main() -> None:
    """Runs the command; Ctrl-C ends it without a word, also while it is still loading."""
    try:
        from specc.cli import main as command

        command()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
