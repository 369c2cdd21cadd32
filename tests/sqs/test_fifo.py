"""What clients of `dq sqs` see of FIFO queues."""

import itertools
import uuid

import pytest

pytest_plugins = ["tests.harness.sqs_fixtures"]


def test_a_group_waits_for_its_messages_that_are_in_flight(sqs, make, take):
    url = make(fifo=True)
    for body, group in [("a1", "a"), ("a2", "a"), ("a3", "a"), ("b1", "b")]:
        sqs.send_message(QueueUrl=url, MessageBody=body, MessageGroupId=group)
    first = take(url, 2)
    assert [message["Body"] for message in first] == ["a1", "a2"]
    assert [message["Body"] for message in take(url, 10)] == ["b1"]
    for message in first:
        sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    (third,) = take(url, 10)
    assert third["Body"] == "a3"
    numbers = [int(message["Attributes"]["SequenceNumber"]) for message in [*first, third]]
    assert numbers == sorted(numbers)


def test_a_message_that_is_given_back_comes_alone(sqs, make, take):
    url = make(fifo=True)
    for body in ["1", "2", "3"]:
        sqs.send_message(QueueUrl=url, MessageBody=body, MessageGroupId="g")
    first, second, _ = take(url, 10)
    sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=first["ReceiptHandle"], VisibilityTimeout=0)
    assert [message["Body"] for message in take(url, 10)] == ["1"]
    sqs.delete_message(QueueUrl=url, ReceiptHandle=second["ReceiptHandle"])


def test_a_message_that_is_sent_again_is_not_added(sqs, make, take, r):
    url = make(fifo=True)
    first = sqs.send_message(QueueUrl=url, MessageBody="x", MessageGroupId="g")
    again = sqs.send_message(QueueUrl=url, MessageBody="x", MessageGroupId="h")
    assert (again["MessageId"], again["SequenceNumber"]) == (first["MessageId"], first["SequenceNumber"])
    (message,) = take(url, 10)
    sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    sqs.send_message(QueueUrl=url, MessageBody="x", MessageGroupId="g")
    assert take(url, 10) == []
    sqs.purge_queue(QueueUrl=url)
    sqs.send_message(QueueUrl=url, MessageBody="x", MessageGroupId="g")
    assert len(take(url, 10)) == 1


def test_a_message_is_remembered_for_five_minutes(sqs, make, r):
    url = make(fifo=True)
    with r.monitor() as seen:
        sqs.send_message(QueueUrl=url, MessageBody="x", MessageGroupId="g", MessageDeduplicationId="d")
        commands = (command["command"] for command in seen.listen())
        (sent,) = itertools.islice((command for command in commands if command.startswith("DQ.SEND")), 1)
    assert sent.endswith("DEDUPID d 300000")


def test_the_id_of_a_message_has_its_sequence_number(sqs, make, take):
    url = make(fifo=True)
    sent = sqs.send_message(QueueUrl=url, MessageBody="x", MessageGroupId="g")
    id = sent["MessageId"]
    assert uuid.UUID(id).version == 8 and int("1" + f"{int(id[:8] + id[9:13] + id[15:18], 16):019}") == int(sent["SequenceNumber"])
    (message,) = take(url, 10)
    assert (message["MessageId"], message["Attributes"]["SequenceNumber"]) == (id, sent["SequenceNumber"])


def test_with_the_scope_of_the_group_another_group_is_another_message(sqs, make, take):
    url = make(fifo=True, DeduplicationScope="messageGroup", FifoThroughputLimit="perMessageGroupId")
    for group in ["g", "h", "g"]:
        sqs.send_message(QueueUrl=url, MessageBody="x", MessageGroupId=group)
    assert len(take(url, 10)) == 2


def test_a_request_that_is_repeated_gets_the_same_messages(sqs, make):
    url = make(fifo=True)
    for body in ["1", "2"]:
        sqs.send_message(QueueUrl=url, MessageBody=body, MessageGroupId=body)

    def ask(attempt):
        answer = sqs.receive_message(QueueUrl=url, ReceiveRequestAttemptId=attempt)
        return [message["Body"] for message in answer.get("Messages", [])]

    assert [ask("a"), ask("a"), ask("b"), ask("c")] == [["1"], ["1"], ["2"], []]


def test_dead_letters_keep_their_group(sqs, make, take, arn):
    dead = make(fifo=True)
    url = make(fifo=True, RedrivePolicy={"deadLetterTargetArn": arn(dead), "maxReceiveCount": 1})
    sqs.send_message(QueueUrl=url, MessageBody="x", MessageGroupId="g")
    take(url, VisibilityTimeout=0)
    (message,) = take(dead, WaitTimeSeconds=2)
    assert message["Attributes"]["MessageGroupId"] == "g"


def test_a_dead_letter_queue_of_the_other_kind_is_refused(sqs, make, arn):
    from botocore.exceptions import ClientError

    dead = make()
    with pytest.raises(ClientError, match="same type of queue"):
        make(fifo=True, RedrivePolicy={"deadLetterTargetArn": arn(dead), "maxReceiveCount": 1})
