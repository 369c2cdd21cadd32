"""clients/php: its own tests with PHPUnit, and the tests that Laravel and Symfony have for their drivers for Redis."""

import os
import re
import shutil
import subprocess

import pytest

from tests.harness.cli import programs
from tests.harness.optional import need
from tests.harness.server import ROOT

CLIENT = ROOT / "clients/php"
# The folder into which scripts/setup.sh puts the suites.
SUITES = ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "php-suites"
DEBIAN = "/usr/share/php"
# The files in /usr/share/php that the packages of a test need.
PACKAGES = {
    "Client": ["Predis"],
    "Laravel": ["Predis", "Mockery", "Illuminate/Queue", "Illuminate/Redis", "Illuminate/Events", "Illuminate/Bus"],
    "Symfony": ["Symfony/Component/Messenger", "Symfony/Component/EventDispatcher"],
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
    # PHPUnit 11 prefers attributes, which PHPUnit 9 does not have, to annotations.
    counts = r"^OK \((\d+) tests?|^Tests: (\d+), Assertions: \d+(, (Risky|PHPUnit Deprecations): \d+)*\.$"
    found = re.search(counts, done.stdout, re.MULTILINE)
    assert found, done.stdout
    return int(found[1] or found[2])


@pytest.mark.parametrize("part, tests", [("Client", 242), ("Laravel", 104), ("Symfony", 39)])
def test_the_package(server, replica_pair, part, tests):
    need_php(part)
    replicated = f"redis://127.0.0.1:{replica_pair.primary.port}"
    assert phpunit(server, "--testsuite", part.lower(), DQ_TEST_REPLICATED=replicated) >= tests


def test_traces_with_the_sdk_of_opentelemetry(server):
    need_php()
    if not (CLIENT / "vendor/open-telemetry/sdk").is_dir():
        pytest.skip("open-telemetry/sdk is no package of Debian: composer require --dev open-telemetry/sdk in clients/php gets it")
    assert phpunit(server, "tests/OpenTelemetry") == 1


def test_a_cluster(cluster):
    need_php()
    nodes = ",".join(f"127.0.0.1:{node.port}" for node in cluster.nodes)
    assert phpunit(cluster.nodes[0], "tests/Client/ClusterTest.php", DQ_TEST_CLUSTER=nodes) == 1


@pytest.mark.parametrize("part, test, tests", [("Laravel", "RedisQueueIntegrationTest", 18), ("Symfony", "RedisExtIntegrationTest", 9)])
def test_the_tests_of_the_framework(server, tmp_path, part, test, tests):
    need_php(part)
    sources = SUITES / part.lower()
    need(sources.is_dir(), f"the source of {part}'s tests")
    # Some tests of the frameworks only check that no exception is thrown.
    config = (CLIENT / "phpunit.xml.dist").read_text()
    config = config.replace('failOnRisky="true"', "").replace("tests/bootstrap.php", f"{CLIENT}/tests/bootstrap.php")
    (tmp_path / "phpunit.xml").write_text(config)
    write = f"require 'tests/bootstrap.php'; Dq\\Tests\\{part}\\Suite::write($argv[1], $argv[2]);"
    subprocess.run(["php", "-r", write, str(sources), str(tmp_path)], cwd=CLIENT, check=True)
    assert phpunit(server, "--configuration", tmp_path / "phpunit.xml", tmp_path / f"{test}.php") == tests


def blocks_of(page) -> list[str]:
    return re.findall(r"^```php\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)


# The code that stands for the application, by page. The other pages need none.
APPLICATIONS = {"drivers/laravel": "tests/Laravel/page.php"}


@pytest.mark.parametrize(
    "page, part",
    [("testing", "Client"), ("drivers/php", "Client"), ("drivers/laravel", "Laravel"), ("drivers/symfony", "Symfony"), ("drivers/hyperf-thinkphp.zh-CN", "Client")],
)
def test_the_test_of_a_page(server, tmp_path, page, part):
    """The test of the page starts its own server, of the programs under test."""
    need_php(part)
    [block] = [block for block in blocks_of(ROOT / f"docs/{page}.md") if "extends TestCase" in block]
    application = f"require '{CLIENT / APPLICATIONS[page]}';\n" if page in APPLICATIONS else ""
    [name] = re.findall(r"^final class (\w+) extends TestCase$", block, re.MULTILINE)
    (tmp_path / f"{name}.php").write_text(f"<?php\n{application}{block}")
    assert phpunit(server, tmp_path / f"{name}.php", **programs()) == 1


def test_a_server_for_tests_that_does_not_start_says_why():
    need_php()
    code = f"require '{CLIENT}/autoload.php'; try {{ new Dq\\TestServer('--nonsense'); }} catch (RuntimeException $e) {{ echo $e->getMessage(); }}"
    for program, why in [("/nowhere/dq", "DQ_CLI"), (str(programs()["DQ_CLI"]), "--nonsense")]:
        done = subprocess.run(["php", "-r", code], env={**os.environ, "DQ_CLI": program}, capture_output=True, text=True, timeout=30)
        assert (done.returncode, done.stderr) == (0, "") and why in done.stdout and program in done.stdout, done


def test_the_php_of_the_documentation(server, tmp_path):
    """Every example is PHP, names existing classes, and the example without end or framework runs."""
    need_php("Client")
    blocks = [block for page in sorted((ROOT / "docs/drivers").glob("*.md")) for block in blocks_of(page)]
    assert len(blocks) >= 9
    for block in blocks:
        file = tmp_path / "example.php"
        file.write_text(f"<?php\n{block}")
        done = subprocess.run(["php", "-l", str(file)], capture_output=True, text=True)
        assert done.returncode == 0, block + done.stdout
        for name in re.findall(r"^use (Dq.*);$", block, re.MULTILINE):
            assert (CLIENT / "src" / (name.removeprefix("Dq\\").replace("\\", "/") + ".php")).exists(), name
    run = [block for block in blocks if any(end in block for end in ("->ensure(", "->redrive()", "maxMessages: 1"))]
    assert len(run) == 4
    for block in run:
        block = block.replace("redis://localhost", f"redis://127.0.0.1:{server.port}")
        file.write_text(f"<?php\nini_set('assert.exception', '1');\nrequire '{CLIENT}/autoload.php';\n{block}")
        done = subprocess.run(["php", "-d", "zend.assertions=1", str(file)], capture_output=True, text=True, timeout=30)
        assert (done.returncode, done.stderr) == (0, ""), block + done.stdout


def test_every_class_loads_without_its_framework():
    """Each file of the client is valid alone, and names nothing of a framework outside of its folder."""
    need_php()
    for path in sorted((CLIENT / "src").rglob("*.php")):
        done = subprocess.run(["php", "-l", str(path)], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout
        if path.parent.name == "src":
            assert not re.search(r"^use (Illuminate|Symfony)", path.read_text(), re.MULTILINE), path


def test_nothing_names_a_listener_that_symfony_7_does_not_have():
    """The example died on Symfony 7 for the lack of a class, which the Symfony that the tests run with still has."""
    removed = re.compile(r"StopWorkerOnSig(term|nals)\w*Listener")
    for path in [ROOT / "examples/symfony/messages.php", *(CLIENT / "src/Symfony").glob("*.php")]:
        assert not removed.search(path.read_text()), path
