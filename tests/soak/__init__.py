"""Mixed traffic for a long time, and the memory afterwards: see `python -m tests.soak --help`."""
