"""The module under faults, judged by the history checker.

Producers and consumers run as separate processes (actors.py) against servers to which one fault
after the other is done (faults/); afterwards every line they wrote is held against the promises
(tests/checker). `python -m tests.torture --seconds 600` runs every fault for its share of the time
and prints one table; tests/short/test_torture.py runs a few of them for seconds.
"""
