"""Programs as torch users write them; the tests run each twice, with the imports changed."""
