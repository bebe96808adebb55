"""Rows of what sees and hears, a file for each kind."""
