"""Alignment of point clouds by J-orthogonal matrices: the search, batches, and certificates."""
