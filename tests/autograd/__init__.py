"""Tests of the graph, the engine and what is built on them."""
