"""One file per group of operators; each enters kinds of work into the table of `family.py`."""
