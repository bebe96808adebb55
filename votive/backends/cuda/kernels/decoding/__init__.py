"""What decoding fuses: products with the norm or the sum beside them, and attention over a cache."""
