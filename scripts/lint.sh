#!/usr/bin/env bash
# Checks the subjects of new commits, the stated Rust version, the layers, rustfmt and clippy for every crate, the
# dependencies, ruff (mistakes and import order, not style) for all Python, and that what is generated is up to date. Any
# finding fails.

set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib/common.sh

scripts/setup.sh build lint

scripts/commits.sh

scripts/rust-version.sh

scripts/layers.sh

say "rustfmt"
cargo fmt --all -- --check
for crate in "${PROGRAMS[@]}"; do
    cargo fmt --manifest-path "$crate/Cargo.toml" --check
done

say "clippy"
cargo clippy --all-targets "${CARGO_FLAGS_LIST[@]}" -- -D warnings
cargo clippy --package dq-simulation --package dq-explorer --package dq-core-bench --all-targets "${CARGO_FLAGS_LIST[@]}" -- -D warnings
for program in "${PROGRAMS[@]}"; do
    cargo_of "$program" clippy --all-targets -- -D warnings
done

say "dependencies"
scripts/deny.sh

say "ruff"
python_dirs=()
for dir in tests examples benches clients scripts monitoring; do
    [ -d "$dir" ] && python_dirs+=("$dir")
done
# Isolated, so that settings in a directory above the checkout have no effect. src/ has no Python, but ruff takes it
# for a source root by default, and then its folders, such as redis, for packages.
"$VENV/bin/ruff" check --isolated --no-cache --config 'src = ["."]' --select E4,E7,E9,F,I "${python_dirs[@]}"

say "generated Python"
"$VENV/bin/python" clients/python/tools/async_to_sync.py --check

say "lint: clean"
