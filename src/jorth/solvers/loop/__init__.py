"""The one loop of all solvers: its contract with them, its budget, its record, when it stops."""
