"""Methods over J-orthogonal matrices on eigenvalue, Procrustes and structural probe problems."""
