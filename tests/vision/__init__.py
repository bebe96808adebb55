"""Tests of votive.vision."""
