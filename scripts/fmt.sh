#!/usr/bin/env bash
# Formats the Rust sources of every crate.

set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

scripts/setup.sh lint
cargo fmt --all
for crate in "${PROGRAMS[@]}" "${UNTESTED[@]}"; do
    cargo fmt --manifest-path "$crate/Cargo.toml"
done
