#!/usr/bin/env bash
# Builds the module, as others should get it, and the load generator, and runs the benchmark; arguments go to
# benches/run.py, or to what BENCH names beside it. REDIS_SERVER names the server to measure on.

set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

scripts/setup.sh build server tests
build_for_others

say "building the load generator"
cargo_of benches/load build --release
say "building the module that does next to nothing"
cargo_of benches/floor build --release

exec "$VENV/bin/python" "benches/${BENCH:-run.py}" --module "$MODULE" --built "$BUILT" \
    --generator "$TARGET/load/release/dq-load" --floor "$TARGET/floor/release/libdq_floor.so" \
    --redis-server "$REDIS_SERVER" "$@"
