#!/usr/bin/env bash
# Builds simulation/ and runs it: for SIM_SECONDS, or STEPS steps, from SEED on; CLOSELY=1 finds the first bad step.

set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

need_rust
cargo_of simulation build --release --quiet
exec "$TARGET/simulation/release/simulate"
