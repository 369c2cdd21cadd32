#!/usr/bin/env bash
# Runs the Criterion benches of the core; arguments go to them (a name, --quick, --save-baseline before, --baseline
# before, --help).

set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

scripts/setup.sh build
cargo bench --package dq-core-bench --benches "${CARGO_FLAGS_LIST[@]}" -- "$@"
