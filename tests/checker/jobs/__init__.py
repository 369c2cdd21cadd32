"""A history of jobs that die, wait for others, run once more and share limits, compared with the event stream of their
queue.

Senders, workers and an operator are processes that write down what they do (actors.py). Afterwards their journals, the
event stream and what is left in the queues are one record (record.py), which is held against what the queue promises
(rules.py). A crash undoes the same changes in the stream, so most rules need no knowledge of the faults. edits.py
has edits of a real record, to show that each rule finds its own fault.
"""
