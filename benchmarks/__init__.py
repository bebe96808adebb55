"""Paired measurements of votive and torch, interleaved, reported as ratios with spread."""
