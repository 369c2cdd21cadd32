"""clients/php: its own tests with PHPUnit, and the tests that Laravel and Symfony have for their drivers for Redis."""

import os
import re
import shutil
import subprocess

import pytest

from tests.harness.optional import need
from tests.harness.server import ROOT

CLIENT = ROOT / "clients/php"
# Where scripts/setup.sh puts them.
SUITES = ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "php-suites"
DEBIAN = "/usr/share/php"
# The files in /usr/share/php that the packages of a test need.
PACKAGES = {
    "Client": ["Predis"],
    "Laravel": ["Predis", "Mockery", "Illuminate/Queue", "Illuminate/Redis", "Illuminate/Events", "Illuminate/Bus"],
    "Symfony": ["Symfony/Component/Messenger", "Symfony/Component/EventDispatcher"],
    "Think": [],
    "Hyperf": [],
}

pytestmark = pytest.mark.slow


def need_php(*parts):
    php = shutil.which("php")
    modules = subprocess.run([php, "-m"], capture_output=True, text=True).stdout.split() if php else []
    need({"redis", "pcntl", "posix"} <= set(modules) and shutil.which("phpunit"), "PHPUnit with phpredis")
    for part in parts:
        for package in PACKAGES[part]:
            need(os.path.isdir(f"{DEBIAN}/{package}"), f"the PHP package {package}")


def phpunit(server, *words, **env) -> int:
    """Runs PHPUnit to its end. Returns the number of its tests, none of which failed or was skipped."""
    env = {
        **os.environ,
        **env,
        "DQ_TEST_URL": f"redis://127.0.0.1:{server.port}",
        "REDIS_HOST": "127.0.0.1",
        "REDIS_PORT": str(server.port),
        "MESSENGER_DQ": f"dq://127.0.0.1:{server.port}",
        "MESSENGER_DQ_DSN": f"dq://127.0.0.1:{server.port}/messages",
    }
    done = subprocess.run(["phpunit", *map(str, words)], cwd=CLIENT, env=env, capture_output=True, text=True, timeout=170)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    # PHPUnit 11 would rather have attributes than annotations, which PHPUnit 9 does not know.
    counts = r"^OK \((\d+) tests?|^Tests: (\d+), Assertions: \d+(, (Risky|PHPUnit Deprecations): \d+)*\.$"
    found = re.search(counts, done.stdout, re.MULTILINE)
    assert found, done.stdout
    return int(found[1] or found[2])


@pytest.mark.parametrize("part, tests", [("Client", 225), ("Laravel", 95), ("Symfony", 33), ("Think", 5), ("Hyperf", 8)])
def test_the_package(server, replica_pair, part, tests):
    need_php(part)
    replicated = f"redis://127.0.0.1:{replica_pair.primary.port}"
    assert phpunit(server, "--testsuite", part.lower(), DQ_TEST_REPLICATED=replicated) >= tests


def test_a_cluster(cluster):
    need_php()
    nodes = ",".join(f"127.0.0.1:{node.port}" for node in cluster.nodes)
    assert phpunit(cluster.nodes[0], "tests/Client/ClusterTest.php", DQ_TEST_CLUSTER=nodes) == 1


@pytest.mark.parametrize("part, test, tests", [("Laravel", "RedisQueueIntegrationTest", 18), ("Symfony", "RedisExtIntegrationTest", 9)])
def test_the_tests_of_the_framework(server, tmp_path, part, test, tests):
    need_php(part)
    sources = SUITES / part.lower()
    need(sources.is_dir(), f"the source of {part}'s tests")
    # Some tests of the frameworks assert nothing but that nothing is thrown.
    config = (CLIENT / "phpunit.xml.dist").read_text()
    config = config.replace('failOnRisky="true"', "").replace("tests/bootstrap.php", f"{CLIENT}/tests/bootstrap.php")
    (tmp_path / "phpunit.xml").write_text(config)
    write = f"require 'tests/bootstrap.php'; Dq\\Tests\\{part}\\Suite::write($argv[1], $argv[2]);"
    subprocess.run(["php", "-r", write, str(sources), str(tmp_path)], cwd=CLIENT, check=True)
    assert phpunit(server, "--configuration", tmp_path / "phpunit.xml", tmp_path / f"{test}.php") == tests


def test_the_php_of_the_documentation(server, tmp_path):
    """Every example is PHP, names classes that there are, and the one without end or framework runs."""
    need_php("Client")
    blocks = [
        block
        for page in sorted((ROOT / "docs/drivers").glob("*.md"))
        for block in re.findall(r"^```php\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    ]
    assert len(blocks) >= 9
    for block in blocks:
        file = tmp_path / "example.php"
        file.write_text(f"<?php\n{block}")
        done = subprocess.run(["php", "-l", str(file)], capture_output=True, text=True)
        assert done.returncode == 0, block + done.stdout
        for name in re.findall(r"^use (Dq.*);$", block, re.MULTILINE):
            assert (CLIENT / "src" / (name.removeprefix("Dq\\").replace("\\", "/") + ".php")).exists(), name
    run = [block for block in blocks if "MANUAL" in block or "->ensure(" in block or "->redrive()" in block]
    assert len(run) == 3
    for block in run:
        block = block.replace("redis://localhost", f"redis://127.0.0.1:{server.port}")
        file.write_text(f"<?php\nini_set('assert.exception', '1');\nrequire '{CLIENT}/autoload.php';\n{block}")
        done = subprocess.run(["php", "-d", "zend.assertions=1", str(file)], capture_output=True, text=True, timeout=30)
        assert (done.returncode, done.stderr) == (0, ""), block + done.stdout


def test_every_class_loads_without_its_framework():
    """Each file of the client is right by itself, and names nothing of a framework outside of its folder."""
    need_php()
    for path in sorted((CLIENT / "src").rglob("*.php")):
        done = subprocess.run(["php", "-l", str(path)], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout
        if path.parent.name == "src":
            assert not re.search(r"^use (Illuminate|Symfony|Hyperf|think)", path.read_text(), re.MULTILINE), path


def test_nothing_names_a_listener_that_symfony_7_does_not_have():
    """The example died on Symfony 7 for the lack of a class, which the Symfony that the tests run with still has."""
    removed = re.compile(r"StopWorkerOnSig(term|nals)\w*Listener")
    for path in [ROOT / "examples/symfony/messages.php", *(CLIENT / "src/Symfony").glob("*.php")]:
        assert not removed.search(path.read_text()), path
