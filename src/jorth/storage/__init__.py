"""Files: written atomically, and read with care because they may be damaged or hostile."""
