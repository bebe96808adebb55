"""Paired measurements of votive and torch: interleaved in one process, reported as ratios with spread."""
