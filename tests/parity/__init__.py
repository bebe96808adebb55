"""Comparison of votive with torch on torch's own sample inputs; of no use without torch."""
