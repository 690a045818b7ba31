"""Files: replaced atomically, and read as if they were damaged or made to do harm."""
