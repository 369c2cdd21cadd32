"""clients/php with the Laravel, Symfony, Predis and PHP of other releases of Debian, each in a separate bare system.

Packagist cannot be reached from where the tests run. Debian has these in its archive.
"""

import os
import subprocess
from collections.abc import Iterator

from tests.harness.server import ROOT

RELEASES = ["trixie", "sid"]
PACKAGES = (
    "php-cli php-redis phpunit php-predis php-mockery php-illuminate-queue php-illuminate-redis php-illuminate-events "
    "php-illuminate-bus php-symfony-messenger php-symfony-event-dispatcher"
)
VERSIONS = "php-cli php-redis php-predis php-illuminate-queue php-symfony-messenger"
PARTS = ["client", "laravel", "symfony"]

# Bash, with the functions of scripts/lib/bare-system.sh: makes the system, once, and prints where it is.
MAKE = """
set -euo pipefail
. scripts/lib/common.sh
. scripts/lib/reproducible.sh
. scripts/lib/bare-system.sh
root=$FRESH/{release}-php
if [ ! -e "$root/installed" ]; then
    root=$(fresh_root {release} php)
    in_root "$root" sh -c 'apt-get -qq -o Acquire::Check-Valid-Until=false update && apt-get -qq install -y --no-install-recommends {packages}' >"$root.log" 2>&1 ||
        {{ tail -n 20 "$root.log" >&2; exit 1; }}
    leave_root "$root"
    touch "$root/installed"
fi
echo "$root"
"""


def rows(short: bool, server, cluster) -> Iterator[tuple[str, str | None]]:
    """Yields each release of Debian with what has failed, or None. In the short form there is none: it takes minutes."""
    del cluster
    for release in [] if short else RELEASES:
        if os.geteuid() != 0:
            yield f"Debian {release}", "NOT RUN: bare systems are made by root only"
            continue
        made = _run(["bash", "-c", MAKE.format(release=release, packages=PACKAGES)])
        if made.returncode != 0:
            yield f"Debian {release}", made.stdout + made.stderr
            continue
        root = made.stdout.splitlines()[-1]
        versions = _run(["chroot", root, "dpkg-query", "-W", "-f", "${Package} ${Version}, ", *VERSIONS.split()]).stdout
        yield f"Debian {release}: {_plain(versions)}", _tests(root, server)


def _plain(versions: str) -> str:
    """Returns names and versions without what Debian has added to them."""
    pairs = (one.split() for one in versions.split(", ") if one)
    return ", ".join(f"{name.removeprefix('php-')} {version.split(':')[-1].split('+')[0].split('-')[0]}" for name, version in pairs)


def _tests(root: str, server) -> str | None:
    _run(["rm", "-rf", f"{root}/root/dq"])
    # The conformance cases are found from the tests.
    for part in ("clients/php", "tests/conformance"):
        _run(["mkdir", "-p", f"{root}/root/dq/{part}"])
        _run(["cp", "-r", f"{ROOT / part}/.", f"{root}/root/dq/{part}"])
    mounted = f"{root}/proc"
    _run(["mount", "-t", "proc", "proc", mounted])
    env = {"DQ_TEST_URL": f"redis://127.0.0.1:{server.port}", "MESSENGER_DQ": f"dq://127.0.0.1:{server.port}"}
    words = ["env", "-i", "PATH=/usr/bin:/bin", "HOME=/root", *(f"{name}={value}" for name, value in env.items())]
    try:
        for part in PARTS:
            # Newer releases of PHPUnit report deprecations, which are not the subject of this run.
            line = f"cd /root/dq/clients/php && phpunit --testsuite {part} --do-not-cache-result"
            done = _run(["chroot", root, *words, "sh", "-c", line])
            if "Tests:" not in done.stdout and "OK (" not in done.stdout or "FAILURES" in done.stdout or "ERRORS" in done.stdout:
                return done.stdout[-4000:] + done.stderr[-1000:]
    finally:
        _run(["umount", mounted])
    return None


def _run(words: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
