"""The fused loss compiled for the CPU, in blocks that stay in the cache.

Import this only where it is used: it loads numba.
"""
