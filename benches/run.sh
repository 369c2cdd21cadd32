#!/usr/bin/env bash
# Builds the module as others should get it and the load generator, and runs the benchmark. With
# --quick it is the module that tests run.
# Arguments go to benches/run.py, or to the program beside it that BENCH names. REDIS_SERVER names the server to measure on.

set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib/common.sh

scripts/setup.sh build server tests
build_for_benchmark "$@"

say "building the load generator"
cargo_of benches/load build --profile "$BESIDE"

built=${BESIDE/dev/debug}
exec "$VENV/bin/python" "benches/${BENCH:-run.py}" --module "$MODULE" --built "$BUILT" \
    --generator "$TARGET/load/$built/dq-load" \
    --redis-server "$REDIS_SERVER" "$@"
