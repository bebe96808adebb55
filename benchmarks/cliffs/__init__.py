"""votive against torch on random shapes: `python -m benchmarks.cliffs cpu --seconds 300 --seed 1`.

A fixed suite is won by tuning its shapes; a cliff is a shape beside them that takes several times as long. Here sizes
are drawn log-uniformly, with dtypes, layouts and gradients, over all families of operators (`families/`). Each case is
a line of text (`spec.py`) that builds the same work from the same numbers in both libraries (`side.py`), so it is
checked once (`check.py`), measured in turns (`measure.py`), and can be run again alone.
"""
