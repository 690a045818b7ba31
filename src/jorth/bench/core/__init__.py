"""What all kinds of benchmarks share; nothing here depends on a particular kind."""
