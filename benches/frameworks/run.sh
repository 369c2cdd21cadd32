#!/usr/bin/env bash
# Builds the module as others should get it, and runs the benchmark. Arguments go to it. With --smoke it is the module
# that tests run.

set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/lib/common.sh

scripts/setup.sh build server tests optional
build_for_benchmark "$@"
export DQ_MODULE="${DQ_MODULE:-$MODULE}" REDIS_SERVER
exec "$VENV/bin/python" -m benches.frameworks --built "$BUILT" "$@"
