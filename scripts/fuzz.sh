#!/usr/bin/env bash
# Runs each target of fuzz/ for FUZZ_SECONDS (60), from the committed corpus; what it finds on the way is kept in
# fuzz/found. The first input that breaks a target ends the run and is left in fuzz/artifacts.
#
# With --stable any Rust will do: the coverage that guides the fuzzer is the same, but nothing watches over memory.
# The code in question has no unsafe, so that little is lost. It keeps nothing it finds, and begins alike each time.

set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

stable=
[ "${1:-}" != --stable ] || stable=yes

if [ -n "$stable" ]; then
    scripts/setup.sh build cxx
    host=$(rustc -vV | sed -n 's/^host: //p')
    # What cargo-fuzz passes, too. A target of its own keeps the flags away from build scripts.
    RUSTFLAGS="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4"
    RUSTFLAGS+=" -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table"
    RUSTFLAGS=$RUSTFLAGS cargo build --package dq-fuzz --profile fuzz --quiet --target "$host" \
        --target-dir "$TARGET/fuzz" "${CARGO_FLAGS_LIST[@]}"
    found=$(mktemp -d)
    trap 'rm -rf "$found"' EXIT
else
    scripts/setup.sh fuzz
    found=fuzz/found
fi

for source in fuzz/fuzz_targets/*.rs; do
    target=$(basename "$source" .rs)
    options=(-max_total_time="${FUZZ_SECONDS:-60}" -timeout=10 -max_len=4096)
    [ ! -f "fuzz/$target.dict" ] || options+=(-dict="fuzz/$target.dict")
    say "fuzzing $target"
    mkdir -p "$found/$target" "fuzz/artifacts/$target"
    if [ -n "$stable" ]; then
        options+=(-seed=1 -artifact_prefix="fuzz/artifacts/$target/")
        "$TARGET/fuzz/$host/fuzz/$target" "$found/$target" "fuzz/corpus/$target" "${options[@]}" 2>"$found/log" || {
            tail -n 30 "$found/log" >&2
            die "$target is broken by an input, which is kept in fuzz/artifacts/$target"
        }
        sed -n "s/^Done \([0-9]*\) runs.*/$target: \1 inputs/p" "$found/log"
    else
        options+=(-print_final_stats=1)
        # Link-time optimisation is for the module; with what watches over memory it takes minutes.
        CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
            cargo +nightly fuzz run "$target" "$found/$target" "fuzz/corpus/$target" -- "${options[@]}"
    fi
done
echo "fuzzing: nothing found"
