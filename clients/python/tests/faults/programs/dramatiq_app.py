"""Actors of Dramatiq."""

import os

import dramatiq
from dqueue.dramatiq import DqBroker
from work import work

broker = DqBroker(
    url=os.environ["FAULTS_URL"],
    heartbeat_timeout=int(os.environ["FAULTS_LEASE"]),
    middleware=[dramatiq.middleware.Retries(max_retries=0)],
)
dramatiq.set_broker(broker)

actor = dramatiq.actor(actor_name="work", queue_name="work")(work)
