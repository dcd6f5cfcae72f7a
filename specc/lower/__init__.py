"""From closed formulas to kernels: which schedule fits, and its slots."""
