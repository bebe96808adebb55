"""Tests of votive.func."""
