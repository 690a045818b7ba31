"""The loop that runs every solver: its contract with them, its budget, its record and its end."""
