"""Methods over J-orthogonal matrices: eigenvalue problems, structural probes, Procrustes."""
