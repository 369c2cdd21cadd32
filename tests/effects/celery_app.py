"""The program of peers.py as a task of Celery: `python -m tests.effects.celery_app PORT NAME`."""

import sys
import time

import redis
from celery import Celery

from tests.effects.peers import WORK
from tests.effects.peers import Celery as Peer

app = Celery("effects", set_as_current=False)


def configure(port) -> Celery:
    app.conf.update(
        broker_url=f"redis://127.0.0.1:{port}/0",
        broker_transport_options={
            "visibility_timeout": Peer.lease, "unacked_restore_interval": 1, "unacked_restore_throttle": 1,
        },  # fmt: skip
        broker_connection_retry_on_startup=True,
        task_acks_late=True,
        task_ignore_result=True,
        worker_prefetch_multiplier=1,
        worker_hijack_root_logger=False,
    )
    return app


@app.task(name="work")
def work(id: str) -> None:
    time.sleep(WORK)
    pipe = client().pipeline(transaction=True)
    pipe.incrby("count", 1)
    pipe.sadd("done", id)
    pipe.execute()


def client() -> redis.Redis:
    return redis.Redis.from_url(app.conf.broker_url)


if __name__ == "__main__":
    configure(sys.argv[1])
    app.worker_main(["worker", "-c", "1", "-n", f"{sys.argv[2]}@effects", "-l", "error", "--without-mingle", "--without-gossip"])
