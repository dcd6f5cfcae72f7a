"""From syntax to typed trees: all mistakes of a file are found and raised together."""
