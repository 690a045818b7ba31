"""Loops over numbers that fill vector registers, compiled for the CPU.

Import this only where it is used: it loads numba.
"""
