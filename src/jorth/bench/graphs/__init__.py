"""Knowledge graphs in the benchmark: methods for the relations of UltraE, tuned alike and compared."""
