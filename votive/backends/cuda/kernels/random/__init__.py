"""Random numbers by the rules that all devices follow."""
