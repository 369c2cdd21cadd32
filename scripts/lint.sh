#!/usr/bin/env bash
# rustfmt, clippy and ruff (real mistakes and import order, not style) over everything; any finding fails.

set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

scripts/setup.sh build lint

say "rustfmt"
cargo fmt --all --check

say "clippy"
cargo clippy --all-targets "${CARGO_FLAGS_LIST[@]}" -- -D warnings

say "ruff"
python_dirs=()
for dir in tests examples benches clients scripts; do
    [ -d "$dir" ] && python_dirs+=("$dir")
done
"$VENV/bin/ruff" check --no-cache --select E4,E7,E9,F,I "${python_dirs[@]}"

say "lint: clean"
