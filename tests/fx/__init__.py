"""Tests of votive.fx."""
