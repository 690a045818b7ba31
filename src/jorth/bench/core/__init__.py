"""What all kinds of benchmarks share; it knows none of them."""
