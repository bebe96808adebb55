"""Sorting, and distinct values."""
