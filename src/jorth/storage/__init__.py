"""Files: replaced atomically, and read with care, as they may be damaged or hostile."""
