#!/usr/bin/env bash
# Builds the module and a server with AddressSanitizer, debug assertions and overflow checks, and runs server tests on
# them. What the sanitizer has to say ends the run with an error, whatever the tests made of it.
#
#   scripts/asan.sh [PYTEST OPTION...]      without any: all server tests but those that measure time or memory

set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

scripts/setup.sh fuzz tests
server=$(scripts/engines.sh path redis-asan)

host=$(rustc +nightly -vV | sed -n 's/^host: //p')
say "building the module with AddressSanitizer"
# A target named apart keeps the sanitizer out of build scripts. Link-time optimisation would take the allocator's
# functions, which the sanitizer watches, apart.
RUSTFLAGS=-Zsanitizer=address \
    CARGO_PROFILE_RELEASE_LTO=off \
    CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
    CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS=true \
    CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS=true \
    cargo +nightly build --release --target "$host" --target-dir "$TARGET/asan" "${CARGO_FLAGS_LIST[@]}"

reports=$(mktemp -d)
trap 'rm -rf "$reports"' EXIT
if [ $# -eq 0 ]; then
    # What is left out counts bytes, which the sanitizer changes, or is about other programs than the server.
    set -- tests --ignore tests/tools/test_dist.py --ignore-glob 'tests/tools/test_cli*.py' \
        --ignore-glob 'tests/tools/test_example*.py' --ignore tests/commands/test_memory_usage.py
fi
failed=0
# - The tests send the server's output nowhere, hence files. A server that is killed has no time to look for leaks, one
#   that ends by itself has.
# - The faults of clock and power come in a library that is loaded before the sanitizer's.
# - A payload that claims an endless size must be refused, not end the server; the sanitizer only mentions it.
ASAN_OPTIONS=log_path=$reports/asan:detect_leaks=1:abort_on_error=1:verify_asan_link_order=0:allocator_may_return_null=1 \
    DQ_MODULE=$TARGET/asan/$host/release/libdq.so REDIS_SERVER=$server \
    "$VENV/bin/python" -m pytest -q "$@" || failed=1
for report in "$reports"/*; do
    [ -e "$report" ] || break
    if grep -q 'ERROR: ' "$report"; then
        cat "$report"
        failed=1
    fi
done
[ "$failed" = 1 ] || say "AddressSanitizer: nothing found"
exit "$failed"
