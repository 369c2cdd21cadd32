"""A running `dq sqs`, and clients of it."""

import subprocess

from tests.harness.cli import Cli


class Gateway:
    """A running `dq sqs`, for `with`. It listens on a port that the system chooses."""

    def __init__(self, cli: Cli, *options, listen="127.0.0.1:0", anonymous=True):
        options = [*(["--anonymous"] if anonymous else []), *map(str, options)]
        self.command = [cli.program, "sqs", "--listen", listen, *options]
        self.env = cli.env()
        self.process = None

    def __enter__(self):
        self.process = subprocess.Popen(
            self.command, env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
        )
        line = self.process.stdout.readline()
        assert line.startswith("dq sqs listens on http://"), line
        self.url = line.split()[-1]
        return self

    def kill(self):
        self.process.kill()
        self.process.wait()

    def __exit__(self, *_):
        self.kill()
        self.process.stdout.close()

    def client(self, key="AKIATEST", secret="secret", **config):
        """A client as boto3 makes it."""
        import boto3
        from botocore.config import Config

        config = {"retries": {"max_attempts": 0}, "read_timeout": 30, **config}
        session = boto3.session.Session(key, secret, region_name="us-east-1")
        return session.client("sqs", endpoint_url=self.url, config=Config(**config))
