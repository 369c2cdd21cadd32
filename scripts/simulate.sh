#!/usr/bin/env bash
# Builds simulation/ and runs it for SIM_SECONDS, or for STEPS steps, beginning with SEED. With CLOSELY=1 it finds the
# first step that goes wrong.

set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib/common.sh

need_rust
cargo build --package dq-simulation --profile checked --quiet "${CARGO_FLAGS_LIST[@]}"
exec "$TARGET/checked/simulate"
