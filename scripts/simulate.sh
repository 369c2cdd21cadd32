#!/usr/bin/env bash
# Builds simulation/ and runs it: for SIM_SECONDS, or STEPS steps, from SEED on; CLOSELY=1 finds the first bad step.

set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

need_rust
cargo build --package dq-simulation --profile simulation --quiet "${CARGO_FLAGS_LIST[@]}"
exec "$TARGET/simulation/simulate"
