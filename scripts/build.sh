#!/usr/bin/env bash
# Builds the module.

set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

scripts/setup.sh build
say "building $MODULE"
cargo build --release "${CARGO_FLAGS_LIST[@]}"
[ "$(uname -s)" != Darwin ] || ln -sf libdq.dylib "$MODULE"
