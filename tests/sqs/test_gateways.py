"""What is left when gateways and servers of `dq sqs` die."""

import os
import subprocess
import urllib.error
import urllib.request

import pytest
from botocore.exceptions import ClientError
from redis import ResponseError

from tests.harness.cli import programs
from tests.harness.server import free_port, wait_for

pytest_plugins = ["tests.harness.sqs_fixtures"]


def test_gateways_share_everything(start_gateway):
    one, other = start_gateway(), start_gateway()
    url = one.client().create_queue(QueueName="jobs")["QueueUrl"]
    there = url.replace(one.url, other.url)
    one.client().send_message(QueueUrl=url, MessageBody="x")
    (message,) = other.client().receive_message(QueueUrl=there)["Messages"]
    one.client().delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    # A change by one is followed by the other with its next send.
    one.client().set_queue_attributes(QueueUrl=url, Attributes={"MaximumMessageSize": "1024"})
    with pytest.raises(ClientError, match="shorter than 1024"):
        other.client().send_message(QueueUrl=there, MessageBody="x" * 1025)
    one.client().delete_queue(QueueUrl=url)
    for act in [
        lambda: other.client().send_message(QueueUrl=there, MessageBody="x"),
        lambda: other.client().receive_message(QueueUrl=there),
    ]:
        with pytest.raises(ClientError, match="NonExistentQueue"):
            act()


def test_messages_outlive_a_gateway(start_gateway):
    one = start_gateway()
    url = one.client().create_queue(QueueName="jobs", Attributes={"VisibilityTimeout": "1"})["QueueUrl"]
    one.client().send_message(QueueUrl=url, MessageBody="x")
    one.client().receive_message(QueueUrl=url)
    one.kill()
    other = start_gateway()
    there = url.replace(one.url, other.url)
    (message,) = other.client().receive_message(QueueUrl=there, WaitTimeSeconds=5)["Messages"]
    assert message["Body"] == "x"


def test_another_gateway_goes_on_with_a_move_task(start_gateway):
    one, other = start_gateway(), start_gateway()
    sqs = one.client()
    dead = sqs.create_queue(QueueName="dead")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    policy = '{"deadLetterTargetArn":"%s","maxReceiveCount":1}' % arn
    sqs.create_queue(QueueName="jobs", Attributes={"RedrivePolicy": policy})
    goal = sqs.create_queue(QueueName="goal")["QueueUrl"]
    for number in range(6):
        sqs.send_message(QueueUrl=dead, MessageBody=str(number))
    sqs.start_message_move_task(
        SourceArn=arn, DestinationArn=arn.replace("dead", "goal"), MaxNumberOfMessagesPerSecond=1
    )
    one.kill()
    there = goal.replace(one.url, other.url)
    got = set()

    def all_there():
        answer = other.client().receive_message(QueueUrl=there, WaitTimeSeconds=2)
        got.update(message["Body"] for message in answer.get("Messages", []))
        return len(got) == 6

    wait_for(all_there, 40, "all messages")


def test_while_the_server_is_away_clients_are_told_to_try_again(start_gateway, make_server):
    server = make_server(appendonly="yes", appendfsync="always")
    # The oldest servers have no WAITAOF. They confirm nothing that is not on disk either.
    try:
        server.client().execute_command("WAITAOF", 0, 0, 1)
        durable = ["--durable"]
    except ResponseError:
        durable = []
    gateway = start_gateway(*durable, url=f"redis://127.0.0.1:{server.port}")
    sqs = gateway.client()
    url = sqs.create_queue(QueueName="jobs")["QueueUrl"]
    sqs.send_message(QueueUrl=url, MessageBody="x")
    server.kill9()
    with pytest.raises(ClientError) as refused:
        sqs.send_message(QueueUrl=url, MessageBody="x")
    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 503
    server.start()
    (message,) = wait_for(lambda: received(sqs, url), 10, "the message")
    assert message["Body"] == "x"


def received(sqs, url):
    try:
        return sqs.receive_message(QueueUrl=url).get("Messages")
    except ClientError:
        return None


def test_dq_server_serves_sqs_beside_itself(program):
    port = free_port()
    command = [program, "server", "--ephemeral", "--sqs", str(port)]
    env = {**os.environ, **programs()}
    server = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout.readline().startswith("redis://")
        url = f"http://127.0.0.1:{port}/?Action=CreateQueue&QueueName=jobs"
        answer = wait_for(lambda: read(url), 10, "an answer")
        assert b"/000000000000/jobs</QueueUrl>" in answer
    finally:
        server.terminate()
        server.wait()
        server.stdout.close()


def read(url):
    try:
        return urllib.request.urlopen(url).read()
    except urllib.error.URLError:
        return None
