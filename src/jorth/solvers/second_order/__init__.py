"""Second-order conditions: the smallest eigenvalue of the Hessian."""
