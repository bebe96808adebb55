"""Layers: modules over `votive.nn.functional`, with torch's names and arguments."""
