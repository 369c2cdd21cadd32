#!/usr/bin/env bash
# Builds the module and a server with AddressSanitizer, debug assertions and overflow checks, and runs server tests and
# hostile input with them. Any report of the sanitizer fails the run, even if all tests pass.
#
#   scripts/asan.sh [PYTEST OPTION...]      default: all server tests except those that measure time or memory

set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib/common.sh

scripts/setup.sh fuzz tests
server=$(scripts/engines.sh path redis-asan)

host=$(rustc +nightly -vV | sed -n 's/^host: //p')
say "building the module with AddressSanitizer"
# An explicit target keeps the sanitizer out of build scripts. Link-time optimisation would break up the functions of
# the allocator, which the sanitizer intercepts.
RUSTFLAGS=-Zsanitizer=address \
    CARGO_PROFILE_RELEASE_LTO=off \
    CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
    CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS=true \
    CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS=true \
    cargo +nightly build --release --target "$host" --target-dir "$TARGET/asan" "${CARGO_FLAGS_LIST[@]}"

reports=$(mktemp -d)
trap 'rm -rf "$reports"' EXIT
if [ $# -eq 0 ]; then
    # The excluded tests count bytes, which the sanitizer changes, or test other programs than the server.
    set -- tests --ignore tests/tools/test_dist.py --ignore-glob 'tests/tools/test_cli*.py' \
        --ignore-glob 'tests/tools/test_example*.py' --ignore tests/commands/test_memory_usage.py
    long=yes
fi
failed=0
# - Reports go to files, because the tests discard the server's output. Leaks are found only in servers that end by
#   themselves, not in those that are killed.
# - The library that injects faults of clock and power is loaded before the sanitizer's.
# - The server must refuse a payload that claims a huge size. So an allocation that is too large returns null instead of
#   ending the server. Without the sanitizer the size alone costs nothing, but the sanitizer marks each byte of it, which
#   takes a second for a few gigabytes, so it refuses what the tests never need.
export ASAN_OPTIONS=log_path=$reports/asan:detect_leaks=1:abort_on_error=1:verify_asan_link_order=0:allocator_may_return_null=1:max_allocation_size_mb=512
export DQ_MODULE=$TARGET/asan/$host/release/libdq.so REDIS_SERVER=$server
"$VENV/bin/python" -m pytest -q "$@" || failed=1
[ -z "${long:-}" ] || "$VENV/bin/python" -m tests.hostile.long --dumps 200000 --commands 200000 --entries 50000 || failed=1
for report in "$reports"/*; do
    [ -e "$report" ] || break
    if grep -q 'ERROR: ' "$report"; then
        cat "$report"
        failed=1
    fi
done
[ "$failed" = 1 ] || say "AddressSanitizer: nothing found"
exit "$failed"
