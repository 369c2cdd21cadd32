#!/usr/bin/env bash
# Builds explorer/ and runs it with the given arguments. Without any it explores all lists for EXPLORE_SECONDS each (a
# night for all), or up to EXPLORE_STATES states each, and keeps what it has reached: run it again to go on.
# With EXPLORE_BUGS it looks for the seeded bugs of the queue instead, all of which it must find.

set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib/common.sh

need_rust
if [ -n "${EXPLORE_BUGS:-}" ]; then
    cargo build --package dq-explorer --profile checked --quiet --features bugs "${CARGO_FLAGS_LIST[@]}"
    exec "$TARGET/checked/explore" bugs
fi
cargo build --package dq-explorer --profile checked --quiet "${CARGO_FLAGS_LIST[@]}"
if [ $# -eq 0 ]; then
    set -- --depth 99 --states "${EXPLORE_STATES:-1500000}" --seconds "${EXPLORE_SECONDS:-3000}" \
        --keep "$TARGET/explored"
fi
exec "$TARGET/checked/explore" "$@"
