"""Triton kernels: one module for each node, phase and variant; its launcher has the module's name."""
