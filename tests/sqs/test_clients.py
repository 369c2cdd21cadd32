"""Clients of SQS work on `dq sqs` without any change: of each a worker is killed in the middle of its work, another one
goes on, and all is done.

What they need is under target/sqs-clients/: `make test-sqs-clients` gets it. Without it they are skipped, and say so.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.harness.server import ROOT, wait_for

pytest_plugins = ["tests.harness.sqs_fixtures"]

HERE = Path(__file__).parent / "clients"
GOT = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve() / "sqs-clients"
PYTHON, TASKIQ, NODE = GOT / "python/bin/python", GOT / "taskiq/bin/python", GOT / "node/node_modules"
LACKING = "{} is not here: scripts/sqs-clients.sh gets it"


class Client:
    """A client: how its worker is started, and how messages are sent if not by boto3."""

    def __init__(self, program: Path, *worker, send=()):
        self.program = program
        self.worker = worker
        self.send = send

    def command(self, words, gateway, url, file):
        names = {"{endpoint}": gateway.url, "{queue}": url, "{file}": str(file)}
        return [self.program, *(names.get(str(word), word) for word in words)]


def script(program: Path, *words) -> Client:
    return Client(program, *words, "{endpoint}", "{queue}", "{file}")


def node(name: str) -> Client:
    # Packages are found from where the script is.
    return script(NODE / ".bin/node", GOT / "node" / name)


CLIENTS = {
    "boto3": script(PYTHON, HERE / "worker_boto3.py"),
    "aws-sdk": node("worker_sdk.mjs"),
    "sqs-consumer": node("worker_consumer.mjs"),
    "celery": Client(
        PYTHON, *"-m celery -A celery_shop worker -c 2 --without-gossip --without-mingle".split(), send=["-c", "import celery_shop; celery_shop.send()"]
    ),
    "taskiq": Client(TASKIQ, *"-m taskiq worker -w 1 taskiq_shop:broker".split(), send=["-c", "import taskiq_shop; taskiq_shop.send()"]),
    "async-aws": script(Path("/usr/bin/php"), HERE / "worker.php"),
    "go": script(GOT / "go/worker"),
}


def lacking(name: str) -> str:
    """Why a client cannot be tested, or an empty text."""
    client = CLIENTS[name]
    if name == "async-aws" and not Path("/usr/share/php/AsyncAws/Sqs/autoload.php").exists():
        return LACKING.format("php-async-aws-sqs")
    if name == "go" and not client.program.exists():
        return build_go(client.program)
    if client.program in (PYTHON, TASKIQ) and not (client.program.parents[1] / "ready").exists():
        return LACKING.format(name)
    return "" if client.program.exists() else LACKING.format(client.program)


def build_go(program: Path) -> str:
    sources = Path("/usr/share/gocode/src/github.com/aws/aws-sdk-go-v2")
    if not (shutil.which("go") and sources.exists()):
        return LACKING.format("Go's SDK")
    env = {**os.environ, "GO111MODULE": "off", "GOPATH": "/usr/share/gocode", "GOFLAGS": ""}
    subprocess.run(["go", "build", "-o", program, HERE / "worker.go"], env=env, check=True)
    return ""


@pytest.fixture(params=CLIENTS)
def client(request):
    if why := lacking(request.param):
        pytest.skip(why)
    for name in ["worker_sdk.mjs", "worker_consumer.mjs"]:
        if request.param in ("aws-sdk", "sqs-consumer"):
            shutil.copy(HERE / name, GOT / "node" / name)
    return request.param, CLIENTS[request.param]


def test_a_worker_that_is_killed_loses_nothing(client, gateway, sqs, r, tmp_path):
    name, client = client
    queue = "celery" if name == "celery" else f"jobs-{name}"
    url = sqs.create_queue(QueueName=queue, Attributes={"VisibilityTimeout": "4"})["QueueUrl"]
    file = tmp_path / "done"
    file.touch()
    env = {
        **os.environ,
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_REGION": "us-east-1",
        "ENDPOINT": gateway.url,
        "QUEUE": queue,
        "FILE": str(file),
        "PYTHONPATH": str(HERE),
    }
    if client.send:
        subprocess.run(client.command(client.send, gateway, url, file), cwd=HERE, env=env, check=True, timeout=60)
    else:
        for start in (0, 10):
            entries = [{"Id": str(i), "MessageBody": str(i)} for i in range(start, start + 10)]
            assert "Failed" not in sqs.send_message_batch(QueueUrl=url, Entries=entries)

    def done():
        return set(file.read_text().split())

    command = client.command(client.worker, gateway, url, file)
    log = open(tmp_path / "worker.log", "w")
    for enough in (5, 20):
        # A session of its own, so that its children die with it.
        worker = subprocess.Popen(command, cwd=HERE, env=env, stdout=log, stderr=log, start_new_session=True)
        try:
            wait_for(lambda: len(done()) >= enough or worker.poll() is not None, 90, f"{enough} of 20")
            assert worker.poll() is None, (tmp_path / "worker.log").read_text()[-2000:]
            if enough == 20:
                wait_for(lambda: r.execute_command("DQ.LEN", f"sqs:{queue}") == 0, 30, "an empty queue")
        finally:
            os.killpg(worker.pid, 9)
            worker.wait()
    assert done() == {str(number) for number in range(20)}
