"""The laboratory: features, probes, steering."""
