"""Requests and messages that no client of `dq sqs` writes: numbers beyond their bounds, names without end, headers of others."""

import itertools
import json
import socket
import urllib.error
import urllib.request

import pytest

pytest_plugins = ["tests.harness.sqs_fixtures"]

BEYOND = [-1, 2**31, 2**53, 2**63 - 1, 2**63, 2**64 - 1, -(2**63) - 1, 1.5, "1e400", "18446744073709551616", [], {}, "x" * 100_000]
# The numbers of each action (cli/src/bounds.rs), where {} stands for the attributes of a queue.
NUMBERS = {
    "ReceiveMessage": ["MaxNumberOfMessages", "WaitTimeSeconds", "VisibilityTimeout"],
    "SendMessage": ["DelaySeconds"],
    "ListQueues": ["MaxResults"],
    "ListMessageMoveTasks": ["MaxResults"],
    "SetQueueAttributes": [
        *("VisibilityTimeout", "MaximumMessageSize", "MessageRetentionPeriod", "DelaySeconds", "ReceiveMessageWaitTimeSeconds"),
        *("KmsDataKeyReusePeriodSeconds", "RedrivePolicy"),
    ],
}


def status(gateway, action, **params) -> int:
    headers = {"X-Amz-Target": f"AmazonSQS.{action}", "Content-Type": "application/x-amz-json-1.0"}
    request = urllib.request.Request(gateway.url, json.dumps(params).encode(), headers)
    try:
        return urllib.request.urlopen(request, timeout=20).status
    except urllib.error.HTTPError as error:
        return error.code


@pytest.mark.parametrize("action", NUMBERS)
def test_numbers_beyond_their_bounds_are_refused_alone_and_in_pairs(gateway, make, arn, action):
    url = make()
    given = {"QueueUrl": url, "SourceArn": arn(url), "MessageBody": "x"}
    names = NUMBERS[action]
    pairs = [*((name,) for name in names), *itertools.combinations(names, 2)]
    for chosen in pairs:
        for values in zip(*([*BEYOND[at:], *BEYOND[:at]] for at in range(len(chosen)))):
            numbers = dict(zip(chosen, values))
            if action == "SetQueueAttributes":
                texts = {name: json.dumps({"deadLetterTargetArn": "a", "maxReceiveCount": value}) if name == "RedrivePolicy" else str(value) for name, value in numbers.items()}
                numbers = {"Attributes": texts}
            assert status(gateway, action, **given, **numbers) == 400, numbers


def test_a_form_without_end_stops_nothing(gateway):
    for form in ("&".join(["Action=ListQueues", "a." * 500_000 + "b=c"]), "Action=ListQueues" + "&a=b" * 200_000):
        with urllib.request.urlopen(gateway.url, form.encode(), timeout=60) as answer:
            assert b"ListQueuesResult" in answer.read()
    deep = b'{"Attributes":' * 100_000
    headers = {"X-Amz-Target": "AmazonSQS.CreateQueue", "Content-Type": "application/x-amz-json-1.0"}
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(urllib.request.Request(gateway.url, deep, headers), timeout=60)
    assert refused.value.code == 400
    assert urllib.request.urlopen(gateway.url + "/health", timeout=20).status == 200


def test_counts_in_the_headers_of_a_message_are_bounded(make, take, r):
    url = make()
    for number in ("9223372036854775807", "18446744073709551615", "-5", "1e300", "9007199254740991"):
        meta = f'{{"t":{number},"by":"x","n":{number}}}'
        r.execute_command("DQ.SEND", f"sqs:{url.rsplit('/', 1)[1]}", "x", "HEADERS", 2, "sqs", meta, "dead-attempts", number)
        (message,) = take(url)
        assert 1 <= int(message["Attributes"]["ApproximateReceiveCount"]) <= 2**53, number
        assert 0 <= int(message["Attributes"]["SentTimestamp"]) < 2**53, number


def test_requests_that_come_while_another_waits_are_answered_after_it(gateway, make):
    host, port = gateway.url.split("/")[-1].split(":")
    receive = "/" + make().split("/", 3)[3] + "?Action=ReceiveMessage&WaitTimeSeconds=1"
    # The long one is more than the gateway reads at once.
    lists = [f"/?Action=ListQueues&QueueNamePrefix={'x' * 100}&Unknown={'y' * 20_000}", "/health"]
    with socket.create_connection((host, int(port))) as connection:
        for path in [receive, *lists, receive]:
            connection.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        connection.sendall(f"GET {receive} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\nGET /health HTTP/1.1\r\n\r\n".encode())
        answers = connection.makefile("rb").read().split(b"HTTP/1.1 200 OK\r\n")[1:]
    wanted = [b"<ReceiveMessageResponse", b"<ListQueuesResponse", b"ok\n", *[b"<ReceiveMessageResponse"] * 2]
    assert [want in answer for want, answer in zip(wanted, answers, strict=True)] == [True] * 5
    assert [b"connection: close" in answer for answer in answers] == [False] * 4 + [True]
    assert all(b"date: " in answer and b"content-length: " in answer for answer in answers)
