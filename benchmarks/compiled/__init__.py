"""Programs as users write them, compiled by votive and by torch."""
