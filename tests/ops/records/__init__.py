"""Catalog records, one file per operator family."""
