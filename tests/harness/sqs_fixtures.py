"""Fixtures of the tests of dq sqs; a test module takes them by naming this one in pytest_plugins."""

import itertools
import json

import pytest

from tests.harness.cli import Cli
from tests.harness.sqs import Gateway

pytest_plugins = ["tests.harness.cli_fixtures"]

_numbers = itertools.count()


@pytest.fixture
def start_gateway(program, server):
    """Starts dq sqs on the shared server, or on the server of a URL: start_gateway("--durable")."""
    pytest.importorskip("boto3")
    running = []

    def start_gateway(*options, url=None, **more):
        cli = Cli(program, url or f"redis://127.0.0.1:{server.port}")
        gateway = Gateway(cli, *options, **more)
        running.append(gateway)
        return gateway.__enter__()

    yield start_gateway
    for gateway in running:
        gateway.__exit__()


@pytest.fixture
def gateway(start_gateway):
    return start_gateway()


@pytest.fixture
def sqs(gateway):
    return gateway.client()


@pytest.fixture
def make(sqs):
    """Makes a queue and returns its URL: make(fifo=True, DelaySeconds=2)."""

    def make(fifo=False, **attributes):
        name = f"q-{next(_numbers)}" + (".fifo" if fifo else "")
        if fifo:
            attributes = {"FifoQueue": "true", "ContentBasedDeduplication": "true", **attributes}
        attributes = {name: value if isinstance(value, str) else json.dumps(value) for name, value in attributes.items()}
        return sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]

    return make


@pytest.fixture
def arn(sqs):
    """The ARN of a queue."""

    def arn(url):
        asked = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
        return asked["Attributes"]["QueueArn"]

    return arn


@pytest.fixture
def take(sqs):
    """Receives messages and returns them: take(url, 10, WaitTimeSeconds=1)."""

    def take(url, count=1, **options):
        answer = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=count, AttributeNames=["All"], **options)
        return answer.get("Messages", [])

    return take
