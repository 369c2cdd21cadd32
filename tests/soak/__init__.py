"""Mixed traffic for a long time, and what becomes of the memory: see `python -m tests.soak --help`."""
