#!/usr/bin/env bash
# Runs each target of fuzz/ for FUZZ_SECONDS (60), from the committed corpus; what it finds on the way is kept in
# fuzz/found. The first input that breaks a target ends the run and is left in fuzz/artifacts.

set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

scripts/setup.sh fuzz

for source in fuzz/fuzz_targets/*.rs; do
    target=$(basename "$source" .rs)
    options=(-max_total_time="${FUZZ_SECONDS:-60}" -timeout=10 -max_len=4096 -print_final_stats=1)
    [ ! -f "fuzz/$target.dict" ] || options+=(-dict="fuzz/$target.dict")
    say "fuzzing $target"
    mkdir -p "fuzz/found/$target"
    cargo +nightly fuzz run "$target" "fuzz/found/$target" "fuzz/corpus/$target" -- "${options[@]}"
done
say "fuzzing: nothing found"
