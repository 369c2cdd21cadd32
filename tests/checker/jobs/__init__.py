"""A history of jobs that die, wait for others, run once more and share limits, held against the event stream of their queue.

Senders, workers and an operator are processes that write down what they do (actors.py). Afterwards their journals, the
event stream and what is left in the queues are one record (record.py), which is held against what the queue promises
(rules.py). What a crash undoes, it undoes in the stream as well, so most rules need no knowledge of the faults.
toy.py is a small queue that can be given faults, to show that each rule sees its own.
"""
