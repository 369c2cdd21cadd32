"""A history checker.

Producers and consumers run as separate processes against a real server, each writing what it
does, with times, into a file of its own (actors.py). Afterwards every line is read (history.py) and
the history is held against what the queue promises: groups and attempts (check.py), what faults put
to the test (durable.py), clocks and standstills (clocks.py), what follows from a message (flows.py),
and what stops deliveries (stops.py). `python -m tests.checker --seconds 60` runs one, and then one of jobs (jobs/);
tests/short/test_checker.py runs a short one, and shows that each rule finds what a wrong server would leave (edits.py).
"""
