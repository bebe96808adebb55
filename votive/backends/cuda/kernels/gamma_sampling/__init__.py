"""Gamma and Dirichlet numbers, and how they move with their parameters."""
