"""Files with weights."""
