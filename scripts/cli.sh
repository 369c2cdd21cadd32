#!/usr/bin/env bash
# Builds the terminal program dq.

set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

scripts/setup.sh build
say "building $TARGET/cli/release/dq"
cargo_of cli build --release
