"""The keeper of messages whose connection was lost continues after every error."""

import pytest

from tests.harness.server import wait_for

pytest.importorskip("kombu", reason="needs kombu: pip install 'dq-queue[celery]'")
from dqueue.drivers.kombu.keeper import Keeper  # noqa: E402


def test_an_ack_whose_connection_is_closed_under_it_is_sent_again():
    # redis-py raises these errors if another thread closes the connection: Celery closes the connections of a lost
    # channel.
    errors = [ValueError("I/O operation on closed file."), AttributeError("'NoneType' object has no attribute 'recv'")]
    sent = []

    def send():
        if errors:
            raise errors.pop(0)
        sent.append("ack")

    keeper = Keeper()
    keeper.send_later("DQ.ACK", 60_000, send)
    wait_for(lambda: sent, 10, "the ack")
    wait_for(lambda: not len(keeper), 10, "a keeper that has nothing left")
    assert sent == ["ack"]
