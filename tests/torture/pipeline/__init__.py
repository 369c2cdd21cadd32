"""Five stages, one after the other, under a thousand power failures: the test checks whether an item is ever in two of
them, or in none

An item counts in its payload how often each stage has handled it. Between two stages it is handed on by
DQ.ACKSEND, and beside that, in the same run, by MULTI/EXEC and by a Lua script over plain lists (pipelines.py). The
servers have `appendfsync always`. In each round the power fails while a log is being synced, or a disk that had
confirmed too much loses more of the log; then everything that the log has kept is counted (run.py).
`python -m tests.torture.pipeline --failures 1000` prints one table; tests/short/test_pipeline.py does a few failures.
"""
