#!/usr/bin/env bash
# Builds the module with profile-guided optimisation. First it builds a module with counters and runs a typical load on
# it (benches/train.py). Then it builds the module again, optimised by the counts. Takes four minutes, and needs a
# server and llvm-profdata. The result is $TARGET/pgo/libdq.so.

set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

scripts/setup.sh build server tests pgo

pgo=$TARGET/pgo
profile=$pgo/profile.profdata
host=$(rustc -vV | sed -n 's/^host: //p')

# Builds the module into a directory below $pgo, with an option of rustc. An explicit target keeps the option out of
# build scripts.
build() {
    local options
    read -ra options <<<"${RUSTFLAGS:-}"
    options+=("$2")
    # Encoded flags, because paths may contain spaces.
    CARGO_ENCODED_RUSTFLAGS=$(IFS=$'\x1f' && echo "${options[*]}") \
        cargo build --release --target "$host" --target-dir "$pgo/$1" "${CARGO_FLAGS_LIST[@]}"
}

say "building the load generator"
cargo_of benches/load build --release
say "building a module that counts what it does"
build counting "-Cprofile-generate=$pgo/counts"
counting=$pgo/counting/$host/release/libdq.so
if [ "$counting" -nt "$profile" ] || [ benches/train.py -nt "$profile" ]; then
    say "counting"
    rm -rf "$pgo/counts"
    "$VENV/bin/python" benches/train.py --module "$counting" --generator "$TARGET/load/release/dq-load" \
        --redis-server "$REDIS_SERVER"
    "$(llvm_profdata)" merge --output "$profile" "$pgo/counts"
fi
say "building $PGO_MODULE by what was counted"
build optimised "-Cprofile-use=$profile"
# The old file is not overwritten, because a server may have loaded it.
cp --remove-destination "$pgo/optimised/$host/release/libdq.so" "$PGO_MODULE"
