"""Tests of the device elsewhere."""
