#!/usr/bin/env bash
# Builds the module with profile-guided optimisation. First it builds a module with counters and runs a typical load on
# it (benches/train.py). Then it builds the module again, optimised by the counts. Takes four minutes, and needs a
# server and llvm-profdata. The result is $TARGET/pgo/libdq.so, and the counts are $TARGET/pgo/profile.profdata.
#
# PROFILE names counts of an earlier build of the same sources, which are used instead. Only with the same counts is the
# result the same. ARCH is the processor for which the result is built (amd64 or arm64); the counts are of this one.

set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib/common.sh
. scripts/lib/reproducible.sh

pgo=$TARGET/pgo
profile=${PROFILE:-$pgo/profile.profdata}
here=$(this_arch)
arch=${ARCH:-$here}

count() {
    local target counting
    target=$(rust_target "$here")
    say "building the load generator"
    cargo_of benches/load build --release
    say "building a module that counts what it does"
    build_release "$here" . "$pgo/counting" "-Cprofile-generate=$pgo/counts"
    counting=$pgo/counting/$target/release/libdq.so
    if [ "$counting" -nt "$profile" ] || [ benches/train.py -nt "$profile" ]; then
        say "counting"
        rm -rf "$pgo/counts"
        "$VENV/bin/python" benches/train.py --module "$counting" --generator "$TARGET/load/release/dq-load" \
            --redis-server "$REDIS_SERVER"
        "$(llvm_profdata)" merge --output "$profile" "$pgo/counts"
    fi
}

if [ -n "${PROFILE:-}" ]; then
    scripts/setup.sh build
    [ -f "$PROFILE" ] || die "there are no counts in $PROFILE, which PROFILE names"
else
    scripts/setup.sh build server tests pgo
    count
fi
result=$PGO_MODULE
[ "$arch" = "$here" ] || result=$pgo/$arch/libdq.so
say "building $result by what was counted"
build_release "$arch" . "$pgo/optimised" "-Cprofile-use=$profile"
mkdir -p "$(dirname "$result")"
# The old file is not overwritten, because a server may have loaded it.
cp --remove-destination "$pgo/optimised/$(rust_target "$arch")/release/libdq.so" "$result"
