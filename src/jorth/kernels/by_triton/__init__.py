"""Kernels for a GPU, compiled by Triton; imported only where it can be used."""
