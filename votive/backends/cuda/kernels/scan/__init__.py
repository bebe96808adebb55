"""Running sums, products, extremes and recurrences."""
