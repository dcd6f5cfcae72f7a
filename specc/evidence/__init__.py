"""Property tests of generated code against the oracle, within derived bounds."""
