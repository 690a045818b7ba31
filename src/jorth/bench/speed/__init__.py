"""Time to a gap on planted Procrustes: methods of jorth beside pymanopt and cdopt."""
