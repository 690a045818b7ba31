"""Inner products and images of points under relations: compiled, by Triton, or by torch."""
