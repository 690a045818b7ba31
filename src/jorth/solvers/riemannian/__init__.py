"""Riemannian methods in the trivialisation X <- R(J S) X with S skew."""
