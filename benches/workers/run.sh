#!/usr/bin/env bash
# Builds the module as others should get it and the workers, and runs the benchmark. Arguments go to run.py. With --smoke
# it is the module that tests run.

set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/lib/common.sh

scripts/setup.sh build server tests optional
build_for_benchmark "$@"
benches/workers/install.sh
exec "$VENV/bin/python" benches/workers/run.py --module "${DQ_MODULE:-$MODULE}" --redis-server "$REDIS_SERVER" "$@"
