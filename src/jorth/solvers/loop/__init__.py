"""The one loop of all solvers: run, chain, budget, stopping, result."""
