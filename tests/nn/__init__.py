"""Tests of modules and layers."""
