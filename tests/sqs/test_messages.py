"""What clients of `dq sqs` see of messages in standard queues, and what dq sees of them."""

import threading
import time

import pytest

from tests.harness.server import wait_for

pytest_plugins = ["tests.harness.sqs_fixtures"]


def test_a_message_is_one_of_dq(sqs, make, take, r):
    url = make()
    name = url.rsplit("/", 1)[1]
    sent = sqs.send_message(
        QueueUrl=url, MessageBody="hello", MessageAttributes={"k": {"DataType": "Binary", "BinaryValue": b"\0"}}
    )
    assert r.execute_command("DQ.LEN", f"sqs:{name}", "ready") == 1
    assert r.execute_command("DQ.PEEK", f"sqs:{name}")[0][b"payload"] == b"hello"
    (message,) = take(url, MessageAttributeNames=["All"])
    assert message["MessageId"] == sent["MessageId"]
    assert message["MD5OfMessageAttributes"] == sent["MD5OfMessageAttributes"]
    assert message["MessageAttributes"]["k"]["BinaryValue"] == b"\0"
    sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    assert r.execute_command("DQ.LEN", f"sqs:{name}") == 0
    assert r.execute_command("DQ.INFO", f"sqs:{name}")[b"acked"] == 1


def test_what_dq_sends_can_be_received(make, take, r):
    url = make()
    name = url.rsplit("/", 1)[1]
    r.execute_command("DQ.SEND", f"sqs:{name}", "from dq", "ID", "mine")
    (message,) = take(url)
    assert (message["Body"], message["MessageId"]) == ("from dq", "mine")
    assert message["Attributes"]["ApproximateReceiveCount"] == "1"


def test_a_delay_may_go_beyond_that_of_aws(sqs, make, take, r):
    url = make()
    name = url.rsplit("/", 1)[1]
    month = {"dq.delay-ms": {"DataType": "Number", "StringValue": str(30 * 86_400_000)}}
    sent = sqs.send_message(QueueUrl=url, MessageBody="later", MessageAttributes=month)
    message = r.execute_command("DQ.GET", f"sqs:{name}", sent["MessageId"])
    assert message[b"due-at"] - message[b"sent-at"] == 30 * 86_400_000
    soon = {"dq.delay-ms": {"DataType": "Number", "StringValue": "300"}}
    sqs.send_message(QueueUrl=url, MessageBody="soon", MessageAttributes=soon)
    assert take(url) == []
    assert [message["Body"] for message in take(url, WaitTimeSeconds=5)] == ["soon"]


def test_those_who_wait_get_a_message_at_once_over_one_connection(gateway, sqs, make, r):
    url = make()
    client = gateway.client(max_pool_connections=30)
    got = []

    def wait():
        answer = client.receive_message(QueueUrl=url, WaitTimeSeconds=20)
        got.append((time.monotonic(), answer["Messages"][0]["Body"]))

    threads = [threading.Thread(target=wait) for _ in range(20)]
    for thread in threads:
        thread.start()
    blocked = f"sqs:{url.rsplit('/', 1)[1]}"
    wait_for(lambda: r.execute_command("DQ.INFO", blocked)[b"blocked-clients"] == 1, 10, "a client that waits")
    time.sleep(0.5)
    assert r.execute_command("DQ.INFO", blocked)[b"blocked-clients"] == 1
    sent = time.monotonic()
    for number in range(2):
        entries = [{"Id": str(i), "MessageBody": f"{number}{i}"} for i in range(10)]
        sqs.send_message_batch(QueueUrl=url, Entries=entries)
    for thread in threads:
        thread.join(10)
    assert sorted(body for _, body in got) == [f"{i:02}" for i in range(20)]
    assert max(at for at, _ in got) - sent < 5


def test_a_client_that_hangs_up_takes_no_message(gateway, sqs, make, take, r):
    import socket

    url = make(VisibilityTimeout=600)
    host, port = gateway.url.split("/")[-1].split(":")
    path = "/" + url.split("/", 3)[3] + "?Action=ReceiveMessage&WaitTimeSeconds=20"
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        blocked = f"sqs:{url.rsplit('/', 1)[1]}"
        wait_for(lambda: r.execute_command("DQ.INFO", blocked)[b"blocked-clients"] == 1, 10, "a client that waits")
    time.sleep(0.2)
    sqs.send_message(QueueUrl=url, MessageBody="hello")
    (message,) = wait_for(lambda: take(url), 5, "the message")
    assert message["Attributes"]["ApproximateReceiveCount"] == "1"


def test_dead_letters_go_to_their_queue_and_back(sqs, make, take, arn, r):
    dead = make()
    url = make(RedrivePolicy={"deadLetterTargetArn": arn(dead), "maxReceiveCount": 2})
    assert sqs.list_dead_letter_source_queues(QueueUrl=dead)["queueUrls"] == [url]
    sent = sqs.send_message(QueueUrl=url, MessageBody="work")
    for _ in range(2):
        (message,) = take(url, WaitTimeSeconds=2)
        sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=0)
    assert take(url) == []
    (message,) = take(dead, VisibilityTimeout=0)
    assert message["MessageId"] == sent["MessageId"]
    assert message["Attributes"]["DeadLetterQueueSourceArn"] == arn(url)
    assert message["Attributes"]["ApproximateReceiveCount"] == "3"
    task = sqs.start_message_move_task(SourceArn=arn(dead))
    assert task["TaskHandle"]
    (message,) = take(url, WaitTimeSeconds=10)
    assert message["MessageId"] == sent["MessageId"]
    assert "DeadLetterQueueSourceArn" not in message["Attributes"]


def test_a_message_that_is_too_old_is_gone(sqs, make, take, r):
    url = make(MessageRetentionPeriod=60)
    name = f"sqs:{url.rsplit('/', 1)[1]}"
    sqs.send_message(QueueUrl=url, MessageBody="old")
    r.execute_command("DQ.ALTER", name, "TTL", 100)
    wait_for(lambda: r.execute_command("DQ.LEN", name) == 0, 5, "an empty queue")
    assert take(url) == []
    wait_for(lambda: r.execute_command("DQ.LEN", name, "dead") == 0, 5, "no dead message")


def test_retention_begins_at_the_send(sqs, make, r):
    """A queue's TTL begins when a message is due, and AWS' retention when it is sent."""
    url = make(MessageRetentionPeriod=100)
    name = f"sqs:{url.rsplit('/', 1)[1]}"
    r.delete(name)
    r.execute_command("DQ.CREATE", name, "CLOCK", "MANUAL", "TTL", 100_000)
    sqs.send_message(QueueUrl=url, MessageBody="due at once")
    sqs.send_message(QueueUrl=url, MessageBody="later", DelaySeconds=40)
    sqs.send_message(QueueUrl=url, MessageBody="later than its retention", DelaySeconds=200)
    long = {"dq.delay-ms": {"DataType": "Number", "StringValue": "200000"}}
    sqs.send_message(QueueUrl=url, MessageBody="beyond AWS", MessageAttributes=long)
    left = []
    for moment in (99_999, 100_000, 200_000, 200_001, 299_999, 300_000):
        r.execute_command("DQ.TICK", name, "TO", moment)
        left.append(r.execute_command("DQ.LEN", name))
    assert left == [4, 2, 2, 1, 1, 0]


@pytest.mark.parametrize("action", ["SubscribeToMoon", "PublishBatch"])
def test_an_action_that_is_not_there_is_refused(gateway, action):
    import urllib.error
    import urllib.request

    request = urllib.request.Request(gateway.url, b"{}", {"X-Amz-Target": f"AmazonSQS.{action}"})
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request)
    assert refused.value.code == 400
    assert b"InvalidAction" in refused.value.read()
