"""Runs two foreign suites on `dq sqs`, and prints what passed, what missed and what is excluded, by name with the reason.

    python -m tests.sqs.suites [--suite localstack|moto] [--long] [--short] [--jobs N]

Both are kept under target/ only. LocalStack's comes from GitHub; SQS_SOURCE names another repository, by URL or path. moto's
comes from its sources on PyPI. A suite that passes less than 95 % of what is in scope ends with 1.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.harness.cli import Cli, build
from tests.harness.server import ROOT, Server
from tests.harness.sqs import Gateway
from tests.sqs.suites.scope import LOCALSTACK, LONG, MOTO, reason

TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve() / "sqs-suites"
HERE = Path(__file__).parent
BAR = 0.95
# The tests of the short form.
FEW = 20


class Suite:
    """A suite: where it comes from, what it needs, and how it is run."""

    name: str
    needs: list
    gateway: list
    port = "0"
    excluded: dict

    def __init__(self):
        self.place = TARGET / self.name

    def fetch(self, venv: Path):
        """The tests, as their authors have released them, with the changes that they need."""
        if (self.place / "ready").exists():
            return
        shutil.rmtree(self.place, ignore_errors=True)
        self.get(venv)
        # So that pytest does not take that of this checkout.
        (self.place / "pytest.ini").write_text("[pytest]\n")
        self.prepare()
        (self.place / "ready").touch()

    def get(self, venv: Path):
        """Gets the tests."""
        raise NotImplementedError

    def prepare(self):
        """Changes in the tests."""

    def change(self, path: str, *changes):
        """Replaces texts in a file."""
        path = self.place / path
        text = path.read_text()
        for old, new in changes:
            assert old in text, (path, old)
            text = text.replace(old, new)
        path.write_text(text)

    def venv(self) -> Path:
        """An environment with what the suite needs."""
        there = TARGET / f"{self.name}-venv"
        wanted = there / "requirements.txt"
        if not wanted.exists() or wanted.read_text() != "\n".join(self.needs):
            print(f"==> installing what {self.name} needs", flush=True)
            subprocess.run([self.python(), "-m", "venv", "--clear", there], check=True)
            subprocess.run([there / "bin/pip", "install", "--quiet", *self.needs], check=True)
            wanted.write_text("\n".join(self.needs))
        return there

    def python(self) -> str:
        """The Python of the environment."""
        return "python3"

    def env(self, url: str, venv: Path) -> dict:
        """Variables of the run."""
        return {}

    def tests(self) -> list:
        """What pytest is told to run."""
        raise NotImplementedError

    def run(self, jobs: int, long: bool, short: bool) -> dict:
        """Runs the tests. Returns the outcome of each."""
        venv, report = self.venv(), TARGET / f"{self.name}.json"
        self.fetch(venv)
        report.unlink(missing_ok=True)
        server = Server().start()
        url = f"redis://127.0.0.1:{server.port}"
        try:
            with Gateway(Cli(build(), url), *self.gateway, listen=f"127.0.0.1:{self.port}") as gateway:
                env = {
                    **os.environ,
                    "AWS_ACCESS_KEY_ID": "x",
                    "AWS_SECRET_ACCESS_KEY": "y",
                    "AWS_DEFAULT_REGION": "us-east-1",
                    "PYTHONPATH": str(HERE),
                    "SQS_REPORT": str(report),
                    "SQS_FEW": str(FEW if short else 0),
                    "SQS_EXCLUDED": json.dumps(list(self.excluded | ({} if long else LONG))),
                    **self.env(gateway.url, venv),
                }
                command = [venv / "bin/python", "-m", "pytest", "-q", "-p", "report_plugin", "-p", "no:cacheprovider"]
                command += ["-W", "ignore", "--timeout", "500", "--tb", "short", *(["-n", str(jobs)] if jobs > 1 else [])]
                log = TARGET / f"{self.name}.log"
                with open(log, "w") as out:
                    subprocess.run([*command, *self.tests()], cwd=self.place, env=env, stdout=out, stderr=out)
        finally:
            server.close()
        if not report.exists():
            sys.exit(f"the tests of {self.name} did not run: {log}")
        return json.loads(report.read_text())


class LocalStack(Suite):
    """Those of LocalStack's tests that its authors ran at AWS, with all that was recorded there compared."""

    name = "localstack"
    source = os.environ.get("SQS_SOURCE", "https://github.com/localstack/localstack")
    revision = "8b9a79f05846835cf4dff63ab7eefdde9df83783"
    needs = ["localstack-core[test,base-runtime]==2026.3.0", "cbor2==5.8.0", "pytest-xdist", "pytest-timeout"]
    gateway = []
    excluded = LOCALSTACK

    def python(self):
        # Its tests are written for 3.12, which Debian 12 does not have.
        return subprocess.check_output(["scripts/python-3.13.sh"], cwd=ROOT, text=True).strip()

    def get(self, venv):
        print(f"==> fetching {self.source}", flush=True)
        git = ["git", "-C", self.place]
        subprocess.run(["git", "init", "--quiet", self.place], check=True)
        subprocess.run([*git, "remote", "add", "origin", self.source], check=True)
        # Only the files that are checked out come, where the other side can do that.
        subprocess.run([*git, "fetch", "--quiet", "--depth", "1", "--filter=blob:none", "origin", self.revision], check=True)
        files = [f"tests/{name}" for name in ["__init__.py", "conftest.py", "aws/__init__.py", "aws/conftest.py"]]
        files += ["tests/aws/services/__init__.py", "tests/aws/services/sqs"]
        subprocess.run([*git, "checkout", "--quiet", "FETCH_HEAD", "--", *files], check=True)

    def prepare(self):
        endpoint = '__import__("os").environ["AWS_ENDPOINT_URL"]'
        self.change(
            "tests/aws/services/sqs/test_sqs.py",
            ('"https://queue.amazonaws.com"', endpoint),
            ('r"https://sqs\\.(.+?)\\.amazonaws\\.com"', endpoint),
            ('r"http://sqs.\\1.localhost.localstack.cloud:4566"', '"http://sqs.<region>.localhost.localstack.cloud:4566"'),
        )
        sqs, functions = self.place / "tests/aws/services/sqs", self.place / "tests/aws/services/lambda_"
        shutil.copy(HERE / "localstack_conftest.py", sqs / "conftest.py")
        # Two tests of Lambda take texts from its tests, which would take all of LocalStack.
        shutil.rmtree(functions, ignore_errors=True)
        (functions / "functions").mkdir(parents=True)
        for name in ["__init__.py", "functions/__init__.py", "functions/lambda_integration.py"]:
            (functions / name).touch()
        (functions / "test_lambda.py").write_text('TEST_LAMBDA_PYTHON = ""\n')

    def env(self, url, venv):
        (data,) = venv.glob("lib/python3*/site-packages/localstack/aws/data")
        return {"TEST_TARGET": "AWS_CLOUD", "AWS_ENDPOINT_URL": url, "AWS_DATA_PATH": str(data)}

    def tests(self):
        there = "tests/aws/services/sqs/"
        conflicts = "localstack.testing.pytest.fixture_conflicts"
        return ["-p", f"no:{conflicts}", there + "test_sqs.py", there + "test_sqs_move_task.py"]


class Moto(Suite):
    """moto's tests, as they run in its server mode."""

    name = "moto"
    needs = ["moto[server,sqs]==5.2.3", "freezegun", "sure", "pytest", "pytest-timeout"]
    gateway = ["--account", "123456789012"]
    port = "5000"
    excluded = MOTO

    def get(self, venv):
        package = self.needs[0].replace("[server,sqs]", "")
        print(f"==> fetching the sources of {package}", flush=True)
        command = [venv / "bin/pip", "download", "--quiet", "--no-deps", "--no-binary", "moto", "--dest", TARGET, package]
        subprocess.run(command, check=True)
        (packed,) = TARGET.glob("moto-*.tar.gz")
        self.place.mkdir(parents=True)
        # Debian 12's Python cannot yet refuse paths outside, and tar does.
        only = ["--strip-components=1", "--wildcards", "*/tests/__init__.py", "*/tests/test_sqs/*"]
        subprocess.run(["tar", "-xzf", packed, "-C", self.place, *only], check=True)
        packed.unlink()

    def env(self, url, venv):
        return {"TEST_SERVER_MODE": "true", "TEST_SERVER_MODE_ENDPOINT": url.replace("127.0.0.1", "localhost")}

    def tests(self):
        names = ["", "_authentication", "_cloudformation", "_message_attributes", "_multiaccount"]
        files = [f"tests/test_sqs/test_sqs{name}.py" for name in names]
        return ["-p", "moto_plugin", *files, "tests/test_sqs/test_server.py"]


def tell(suite: Suite, results: dict, long: bool) -> bool:
    """Prints the outcomes. Returns whether enough have passed."""
    excluded = suite.excluded | ({} if long else LONG)
    passed, missed, out = [], [], []
    for name, outcome in sorted(results.items()):
        why = reason(name, excluded)
        if not why and outcome.startswith("skipped"):
            why = outcome.partition(": ")[2]
        if why:
            out.append((name, why))
        else:
            (passed if outcome == "passed" else missed).append(name)
    count = len(passed) + len(missed)
    share = len(passed) / max(count, 1)
    print(f"\n{suite.name}: {len(passed)} of {count} in scope passed, {share:.1%}; {len(out)} of {len(results)} are not in scope")
    for name in missed:
        print(f"  missed    {short(name)}")
    for name, why in out:
        print(f"  excluded  {short(name)}: {why}")
    return share >= BAR


def short(name: str) -> str:
    return name.rsplit("/", 1)[-1].replace("TestSqsProvider::", "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", choices=["localstack", "moto"], help="only this one")
    parser.add_argument("--short", action="store_true", help=f"only {FEW} of moto's tests, from all of them")
    parser.add_argument("--long", action="store_true", help="with the tests that wait for six minutes")
    parser.add_argument("--jobs", type=int, default=8, help="how many of LocalStack's tests run at once; most only wait")
    args = parser.parse_args()
    TARGET.mkdir(parents=True, exist_ok=True)
    enough = True
    for kind in [Moto] if args.short else [LocalStack, Moto]:
        if args.suite in (None, kind.name):
            suite = kind()
            try:
                results = suite.run(args.jobs if kind is LocalStack else 1, args.long, args.short)
                enough &= tell(suite, results, args.long)
            except subprocess.CalledProcessError as error:
                print(f"\n{suite.name}: its tests cannot be had or run here: {error}", flush=True)
                enough = False
    sys.exit(0 if enough else 1)


if __name__ == "__main__":
    main()
