"""`dq sqs` on a Redis Cluster."""

import json

import pytest
from botocore.exceptions import ClientError

from tests.harness.cli import Cli

pytest_plugins = ["tests.harness.sqs_fixtures"]


def test_queues_are_spread_over_a_cluster(start_gateway, cluster):
    sqs = start_gateway(url=f"redis://127.0.0.1:{cluster.nodes[0].port}").client()
    urls = [sqs.create_queue(QueueName=f"q-{number}")["QueueUrl"] for number in range(6)]
    assert sqs.list_queues()["QueueUrls"] == urls
    for url in urls:
        sqs.send_message(QueueUrl=url, MessageBody=url)
    for url in urls:
        (message,) = sqs.receive_message(QueueUrl=url, WaitTimeSeconds=5)["Messages"]
        assert message["Body"] == url
        sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        assert "Messages" not in sqs.receive_message(QueueUrl=url, WaitTimeSeconds=1)


def test_a_hash_tag_lets_dead_letters_go(start_gateway, cluster):
    sqs = start_gateway("--prefix", "{sqs}:", url=f"redis://127.0.0.1:{cluster.nodes[0].port}").client()
    dead, arns = sqs.create_queue(QueueName="dead")["QueueUrl"], ["QueueArn"]
    arn = sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=arns)["Attributes"]["QueueArn"]
    policy = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": 1})
    url = sqs.create_queue(QueueName="jobs", Attributes={"RedrivePolicy": policy})["QueueUrl"]
    sqs.send_message(QueueUrl=url, MessageBody="x")
    sqs.receive_message(QueueUrl=url, VisibilityTimeout=0)
    (message,) = sqs.receive_message(QueueUrl=dead, WaitTimeSeconds=5)["Messages"]
    assert message["Body"] == "x"


def test_no_queue_has_its_dead_letters_in_another_slot(start_gateway, cluster):
    sqs = start_gateway(url=f"redis://127.0.0.1:{cluster.nodes[0].port}").client()
    arns = {}
    for name in ["dead", "jobs"]:
        url = sqs.create_queue(QueueName=name)["QueueUrl"]
        asked = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
        arns[name] = asked["Attributes"]["QueueArn"]
    policy = {"RedrivePolicy": json.dumps({"deadLetterTargetArn": arns["dead"], "maxReceiveCount": 1})}
    for refused in [
        lambda: sqs.set_queue_attributes(QueueUrl=url, Attributes=policy),
        lambda: sqs.create_queue(QueueName="others", Attributes=policy),
    ]:
        with pytest.raises(ClientError, match="hash tag") as error:
            refused()
        assert error.value.response["Error"]["QueryErrorCode"] == "UnsupportedOperation"
    assert sqs.list_queues(QueueNamePrefix="others").get("QueueUrls") is None


def test_durable_is_refused_there(program, cluster):
    cli = Cli(program, f"redis://127.0.0.1:{cluster.nodes[0].port}")
    assert "appendfsync always" in cli("sqs", "--anonymous", "--durable", code=1).stderr
