"""clients/node, built once, with older and newer releases of ioredis, node-redis, NestJS and BullMQ from the npm registry."""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from tests.harness.server import ROOT

CLIENT = ROOT / "clients/node"
# The folder into which scripts/setup.sh puts the tools with which the client is built.
BUILT = ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "node-client"

COMMON = {"rxjs": "7.8.2", "@types/node": "20.19.43", "typescript": "5.4.5"}
# The oldest versions that package.json allows, those in between, and the newest of each line.
SETS = [
    {"ioredis": "5.3.1", "redis": "4.6.0", "nestjs": "9.0.0", "reflect-metadata": "0.1.13", "bullmq": "6.1.0"},
    {"ioredis": "5", "redis": "4", "nestjs": "10", "reflect-metadata": "0.2.2"},
    {"ioredis": "5.8.0", "redis": "5.0.0", "nestjs": "11", "reflect-metadata": "0.2.2", "bullmq": "6.2.0", "@nestjs/bullmq": "11.0.5"},
    {"ioredis": "5", "redis": "5.9.0", "nestjs": "11", "reflect-metadata": "0.2.2"},
    {"ioredis": "6", "redis": "5", "nestjs": "12", "reflect-metadata": "0.2.2"},
    {"ioredis": "6", "redis": "6", "nestjs": "12", "reflect-metadata": "0.2.2", "bullmq": "6", "@nestjs/bullmq": "12"},
]
TESTS = ["conformance", "queue", "worker", "odd", "family", "nestjs"]
SHORT_TESTS = ["conformance", "worker", "nestjs"]
MORE_TESTS = {"bullmq": ["bullmq", "bullmq-ahead", "bullmq-effects", "bullmq-secrets", "bullmq-loss", "bullmq-odd", "bullmq-stopping", "bullmq-cluster"], "@nestjs/bullmq": ["nestjs-bullmq"]}
"""Those that need a library that not every set has."""

# Projects of NestJS resolve modules in this way by default, and `exports` of package.json is not read then.
TYPES = """
import 'reflect-metadata';
import { Redis } from 'ioredis';
import { createClient } from 'redis';
import { Queue, Worker } from 'dq-queue';
import { DqClient, DqServer } from 'dq-queue/nestjs';
const queue = new Queue(new Redis(), 'q');
new Worker(new Queue(createClient(), 'q'), (message) => message.text);
export const parts = [new DqServer({ source: queue }), new DqClient({ source: queue })];
"""
BULLMQ_TYPES = """
import { setDefaultBackendFactory } from 'bullmq';
import { createDqBackend } from 'dq-queue/bullmq';
setDefaultBackendFactory(createDqBackend({ connection: new Redis() }));
"""
FLAGS = "--noEmit --strict --skipLibCheck --esModuleInterop --module commonjs --moduleResolution node10 --target es2022"


def rows(short: bool, server, cluster) -> Iterator[tuple[str, str | None]]:
    """Yields each set of versions with what has failed, or None."""
    if not (BUILT / "package-lock.json").exists():
        yield "clients/node", "what it is built with is not here: make setup-optional gets it"
        return
    folder = Path(tempfile.mkdtemp(prefix="dq-versions-"))
    try:
        for name in ["src", "test", "package.json", "tsconfig.json", "README.md", "LICENSE"]:
            (shutil.copytree if (CLIENT / name).is_dir() else shutil.copy)(CLIENT / name, folder / name)
        (folder / "node_modules").symlink_to(BUILT / "node_modules")
        problem = _run(folder, "npm", "run", "build")
        (folder / "node_modules").unlink()
        if problem:
            yield "the build", problem
            return
        for versions in SETS[:1] if short else SETS:
            tests = [*(SHORT_TESTS if short else TESTS), *chain.from_iterable(MORE_TESTS.get(name, []) for name in versions)]
            problem = _install(folder, versions) or _types(folder, "bullmq" in versions) or _tests(folder, tests, server, cluster)
            yield ", ".join(f"{name} {version}" for name, version in _installed(folder, versions).items()), problem
    finally:
        shutil.rmtree(folder)


def _install(folder: Path, versions: dict) -> str | None:
    shutil.rmtree(folder / "node_modules", ignore_errors=True)
    package = json.loads((CLIENT / "package.json").read_text())
    wanted = {**COMMON, **versions}
    nest = wanted.pop("nestjs")
    for part in ["common", "core", "microservices"]:
        wanted[f"@nestjs/{part}"] = nest
    package["devDependencies"] = wanted
    (folder / "package.json").write_text(json.dumps(package))
    words = "install --no-audit --no-fund --ignore-scripts --no-package-lock --legacy-peer-deps --loglevel=error"
    problem = _run(folder, "npm", *words.split())
    if problem is None:
        (folder / "node_modules/dq-queue").symlink_to(folder)
    return problem


def _installed(folder: Path, versions: dict) -> dict[str, str]:
    """The versions that a range stands for."""
    found = {}
    for name, wanted in versions.items():
        package = folder / "node_modules" / ("@nestjs/microservices" if name == "nestjs" else name) / "package.json"
        if name != "reflect-metadata":
            found[name] = json.loads(package.read_text())["version"] if package.exists() else wanted
    return found


def _types(folder: Path, with_bullmq: bool) -> str | None:
    (folder / "types.ts").write_text(TYPES + (BULLMQ_TYPES if with_bullmq else ""))
    return _run(folder, "npx", "tsc", *FLAGS.split(), "types.ts")


def _tests(folder: Path, tests: list[str], server, cluster) -> str | None:
    env = {
        "DQ_TEST_URL": f"redis://127.0.0.1:{server.port}",
        "DQ_TEST_CLUSTER": ",".join(f"127.0.0.1:{node.port}" for node in cluster.nodes),
        "DQ_CONFORMANCE": f"{(ROOT / 'tests/conformance').as_uri()}/",
    }
    files = [f"test/{test}.test.mjs" for test in tests]
    flags = ["--test", "--test-concurrency=1", "--test-reporter=tap", "--test-timeout=160000"]
    problem = _run(folder, "node", *flags, *files, **env)
    if problem is None:
        return None
    lines = problem.splitlines()
    failed = [number for number, line in enumerate(lines) if line.lstrip().startswith("not ok")]
    return "\n".join(line for number in failed[:5] for line in lines[number : number + 20])


def _run(folder: Path, *words: str, **env: str) -> str | None:
    """Runs a program. Returns what it has printed if it fails."""
    done = subprocess.run(words, cwd=folder, env={**os.environ, **env}, capture_output=True, text=True)
    return None if done.returncode == 0 else done.stdout + done.stderr
