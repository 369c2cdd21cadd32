#!/usr/bin/env bash
# Builds the module. With --checked it is the one that tests run: with debug assertions and overflow checks, and without
# link-time optimisation, which takes minutes.

set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib/common.sh

scripts/setup.sh build
module=$MODULE
flags=(--release)
if [ "${1:-}" = --checked ]; then
    module=$CHECKED_MODULE
    flags=(--profile checked)
fi
say "building $module"
cargo build "${flags[@]}" "${CARGO_FLAGS_LIST[@]}"
[ "$(uname -s)" != Darwin ] || ln -sf libdq.dylib "$module"
