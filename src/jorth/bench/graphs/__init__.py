"""Knowledge graphs: methods for the relations of UltraE, tuned alike and compared."""
