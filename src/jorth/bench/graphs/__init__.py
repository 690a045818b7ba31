"""Knowledge graphs: methods for the relations of UltraE, tuned in the same way and compared."""
