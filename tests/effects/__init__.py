"""ACK ... APPLY in the large: against a model and the plain commands, under faults, beside other queues, and its cost."""
