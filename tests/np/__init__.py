"""Tests of `votive.np` against NumPy itself."""
