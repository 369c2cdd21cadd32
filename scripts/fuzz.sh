#!/usr/bin/env bash
# Runs each target of fuzz/ for FUZZ_SECONDS (60), from the committed corpus. New inputs are stored in fuzz/found. The
# first input that makes a target fail ends the run and is stored in fuzz/artifacts.
#
# With --stable it needs no nightly Rust. Coverage still guides the fuzzer, but there is no AddressSanitizer, which
# matters little because the fuzzed code has no unsafe. It stores no new inputs, so each run begins with the committed
# corpus.

set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib/common.sh

stable=
[ "${1:-}" != --stable ] || stable=yes

if [ -n "$stable" ]; then
    scripts/setup.sh build cxx
    host=$(rustc -vV | sed -n 's/^host: //p')
    # The flags are those of cargo-fuzz. An explicit target keeps them out of build scripts.
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

# Whether a target finds each bug that can be seeded around its code (fuzz/src/bug.rs) in the committed corpus.
finds_seeded_bugs() {
    local bug bugs=()
    case $1 in
    arguments) bugs=(lost-cut lost-spare) ;;
    log_entry) bugs=(any-steps) ;;
    esac
    for bug in "${bugs[@]}"; do
        ! DQ_FUZZ_BUG=$bug "$TARGET/fuzz/$host/fuzz/$1" -runs=0 -artifact_prefix="$found/" "fuzz/corpus/$1" 2>"$found/log.$bug" ||
            die "$1 has not found the seeded bug $bug"
        grep -q 'panicked at' "$found/log.$bug" || die "$1 ended for another reason than the seeded bug $bug"
    done
}

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
        finds_seeded_bugs "$target"
        sed -n "s/^Done \([0-9]*\) runs.*/$target: \1 inputs/p" "$found/log"
    else
        options+=(-print_final_stats=1)
        # Link-time optimisation is only for the module. With the sanitizer it takes minutes.
        CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
            cargo +nightly fuzz run "$target" "$found/$target" "fuzz/corpus/$target" -- "${options[@]}"
    fi
done
echo "fuzzing: nothing found"
