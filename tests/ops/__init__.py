"""Tests of the operators through the catalog."""
