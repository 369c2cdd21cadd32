"""A history checker for groups.

Producers and consumers run as separate processes against a real server, each writing what it
does, with times, into a file of its own (actors.py). Afterwards every line is read and the
history is held against what groups promise (check.py). `python -m tests.checker --seconds 60`
runs one; tests/tools/test_checker.py runs a short one and shows that the checker sees seeded
faults.
"""
