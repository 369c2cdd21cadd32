#!/usr/bin/env bash
# Builds the module by profile-guided optimisation: once so that it counts what it does, then, when it has done what a
# queue does (benches/train.py), anew, so that the code which was run lies together and straight. Four minutes; needs a
# server and llvm-profdata. The module is then at $TARGET/pgo/libdq.so.

set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

scripts/setup.sh build server tests pgo

pgo=$TARGET/pgo
profile=$pgo/profile.profdata
host=$(rustc -vV | sed -n 's/^host: //p')

# Builds the module into a directory below $pgo, with this option of rustc's. A target that is named keeps the option out
# of build scripts.
build() {
    local options
    read -ra options <<<"${RUSTFLAGS:-}"
    options+=("$2")
    # Encoded, so that paths with spaces stay whole.
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
# Not written over: a server may have it loaded.
cp --remove-destination "$pgo/optimised/$host/release/libdq.so" "$PGO_MODULE"
