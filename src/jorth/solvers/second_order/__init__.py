"""Second-order conditions: the smallest eigenvalue of the Hessian, and the way out of saddles."""
