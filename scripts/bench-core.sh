#!/usr/bin/env bash
# Runs the Criterion benchmarks of the core. The arguments are Criterion's: a name, --quick, --save-baseline before,
# --baseline before, --help.

set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

scripts/setup.sh build
cargo bench --package dq-core-bench --benches "${CARGO_FLAGS_LIST[@]}" -- "$@"
