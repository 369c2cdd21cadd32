#!/usr/bin/env bash
# Builds the module, as others should get it, and the load generator, and runs the benchmark; arguments go to benches/run.py, or to what BENCH
# names beside it. REDIS_SERVER names the server to measure on.

set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

scripts/setup.sh build server tests
build_for_others

load_target=${CARGO_TARGET_DIR:-target}/load
say "building the load generator"
cargo build --release --manifest-path benches/load/Cargo.toml --target-dir "$load_target" "${CARGO_FLAGS_LIST[@]}"

floor_target=${CARGO_TARGET_DIR:-target}/floor
say "building the module that does next to nothing"
cargo build --release --manifest-path benches/floor/Cargo.toml --target-dir "$floor_target" "${CARGO_FLAGS_LIST[@]}"

exec "$VENV/bin/python" "benches/${BENCH:-run.py}" --module "$MODULE" --built "$BUILT" --generator "$load_target/release/dq-load" \
    --floor "$floor_target/release/libdq_floor.so" \
    --redis-server "$REDIS_SERVER" "$@"
