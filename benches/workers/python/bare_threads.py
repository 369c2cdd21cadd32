"""The ceiling of Python with one thread: a loop over redis-py that only fetches and acks, COUNT at a time."""

import job
import redis

client = redis.Redis(port=job.PORT, protocol=3)
acks = []
while True:
    batch = client.execute_command("DQ.FETCH", "jobs", "COUNT", job.CONCURRENCY, "BLOCK", 2000, *acks)
    for _, _, _, payload in batch or ():
        job.arrived(payload)
    acks = ["ACK", len(batch), *(one[1] for one in batch)] if batch else []
