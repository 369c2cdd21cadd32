#!/usr/bin/env bash
# Runs the Rust tests of the library under Miri, which detects undefined behaviour, also in dependencies. Miri is
# hundreds of times slower than native code, so each test gets MIRI_SECONDS (60), and random tests run few cases. A test
# that is not done by then has not failed, and is counted separately.
#
#   scripts/miri.sh [PATTERN]       tests whose names match (extended regular expression; default all)

set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib/common.sh

scripts/setup.sh build
cargo +nightly --version >/dev/null 2>&1 || die "Miri needs a nightly Rust: rustup toolchain install nightly"
if ! cargo +nightly miri --version >/dev/null 2>&1; then
    have rustup || die "please install Miri and the sources of the standard library for your nightly Rust"
    say "installing with rustup: miri rust-src"
    rustup --quiet component add --toolchain nightly miri rust-src
fi

# Random tests read files and random seeds, which Miri does not allow by default.
export MIRIFLAGS="-Zmiri-disable-isolation ${MIRIFLAGS:-}"
export PROPTEST_CASES=${PROPTEST_CASES:-2}
miri=(cargo +nightly miri test --quiet --package dq-queue --lib --target-dir "$TARGET/miri" "${CARGO_FLAGS_LIST[@]}" --)

say "building for Miri"
mapfile -t tests < <("${miri[@]}" --list | sed -n 's/: test$//p' | grep -E "${1:-.}")
[ ${#tests[@]} -gt 0 ] || die "no test matches ${1:-}"

log=$(mktemp)
trap 'rm -f "$log"' EXIT
passed=0 failed=() unfinished=()
for test in "${tests[@]}"; do
    result=0
    timeout "${MIRI_SECONDS:-60}" "${miri[@]}" --exact "$test" </dev/null >"$log" 2>&1 || result=$?
    case $result in
    0) passed=$((passed + 1)) ;;
    124) unfinished+=("$test") ;;
    *)
        failed+=("$test")
        cat "$log"
        ;;
    esac
done
[ ${#unfinished[@]} -eq 0 ] || printf 'not done in time: %s\n' "${unfinished[@]}"
[ ${#failed[@]} -eq 0 ] || printf 'failed: %s\n' "${failed[@]}"
say "Miri: $passed passed, ${#failed[@]} failed, ${#unfinished[@]} not done in time"
[ ${#failed[@]} -eq 0 ]
