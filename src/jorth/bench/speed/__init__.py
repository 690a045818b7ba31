"""Time to a gap on planted Procrustes: methods of jorth compared with pymanopt and cdopt."""
