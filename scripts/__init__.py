"""Scripts that maintain the repository."""
