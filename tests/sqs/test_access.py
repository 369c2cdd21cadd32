"""Who may use `dq sqs`: signatures, keys and addresses."""

import urllib.error
import urllib.request

import pytest
from botocore.exceptions import ClientError

pytest_plugins = ["tests.harness.sqs_fixtures"]


@pytest.fixture
def guarded(start_gateway, tmp_path):
    keys = tmp_path / "keys"
    keys.write_text("# everything\nALL s3cret/+=\nREADS abc r\nMAILS def rw mails-*\n")
    keys.chmod(0o600)
    return start_gateway("--keys", keys, anonymous=False)


def test_only_a_right_signature_comes_in(guarded):
    url = guarded.client("ALL", "s3cret/+=").create_queue(QueueName="jobs.2".replace(".", "-"))["QueueUrl"]
    for key, secret, code in [
        ("ALL", "wrong", "SignatureDoesNotMatch"),
        ("NOBODY", "x", "InvalidClientTokenId"),
    ]:
        with pytest.raises(ClientError) as refused:
            guarded.client(key, secret).send_message(QueueUrl=url, MessageBody="x")
        assert refused.value.response["Error"]["Code"] == code
        assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 403
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(url + "?Action=ReceiveMessage")
    assert refused.value.code == 403


def test_a_signature_may_be_in_the_address(guarded):
    from botocore.auth import SigV4QueryAuth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    url = guarded.client("ALL", "s3cret/+=").create_queue(QueueName="jobs")["QueueUrl"]
    asked = AWSRequest("GET", url, params={"Action": "SendMessage", "MessageBody": "a b/ü+&"})
    SigV4QueryAuth(Credentials("ALL", "s3cret/+="), "sqs", "eu-west-1").add_auth(asked)
    signed = asked.prepare().url
    assert b"SendMessageResult" in urllib.request.urlopen(signed).read()
    with pytest.raises(urllib.error.HTTPError):
        urllib.request.urlopen(signed.replace("SendMessage", "PurgeQueue"))
    (message,) = guarded.client("ALL", "s3cret/+=").receive_message(QueueUrl=url)["Messages"]
    assert message["Body"] == "a b/ü+&"


def test_a_key_does_what_its_line_says(guarded):
    everything = guarded.client("ALL", "s3cret/+=")
    jobs, mails = (everything.create_queue(QueueName=name)["QueueUrl"] for name in ["jobs", "mails-1"])
    reads, writes = guarded.client("READS", "abc"), guarded.client("MAILS", "def")
    assert reads.get_queue_attributes(QueueUrl=jobs, AttributeNames=["QueueArn"])["Attributes"]
    writes.send_message(QueueUrl=mails, MessageBody="x")
    for act in [
        lambda: reads.receive_message(QueueUrl=jobs),
        lambda: writes.send_message(QueueUrl=jobs, MessageBody="x"),
        lambda: writes.create_queue(QueueName="jobs-2"),
    ]:
        with pytest.raises(ClientError) as refused:
            act()
        assert refused.value.response["Error"]["Code"] == "AccessDenied"
    assert writes.list_queues()["QueueUrls"] == [mails]


def test_everybody_comes_in_only_from_this_machine(dq):
    refused = dq("sqs", "--anonymous", "--listen", "0.0.0.0:0", code=1)
    assert "--keys" in refused.stderr
    assert "--keys" in dq("sqs", code=2).stderr


def test_a_page_in_a_browser_cannot_ask_without_a_signature(gateway):
    url = gateway.url + "/?Action=ListQueues"
    for headers in [{}, {"Host": "sqs:9324"}, {"Host": "my.localhost"}, {"Sec-Fetch-Site": "none"}]:
        assert urllib.request.urlopen(urllib.request.Request(url, headers=headers)).status == 200
    for headers in [{"Host": "evil.example"}, {"Sec-Fetch-Site": "cross-site"}, {"Origin": "http://evil.example"}]:
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(urllib.request.Request(url, headers=headers))
        assert refused.value.code == 403
