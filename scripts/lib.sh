# shellcheck shell=bash disable=SC2034
# Shared by the scripts beside it; sourced from the root of the repository.

# A Rust installed by rustup a moment ago is not on the PATH of the shell that installed it.
if ! command -v cargo >/dev/null 2>&1 && [ -x "$HOME/.cargo/bin/cargo" ]; then
    PATH=$HOME/.cargo/bin:$PATH
fi

REDIS_SERVER=${REDIS_SERVER:-redis-server}
VENV=.venv
TARGET=$(realpath -m "${CARGO_TARGET_DIR:-target}")
MODULE=$TARGET/release/libdq.so
# The same by profile-guided optimisation, where it was built.
PGO_MODULE=$TARGET/pgo/libdq.so
# The programs beside the module are crates of their own, so that what they need stays out of it. Each is built in a
# directory of its name below the module's.
PROGRAMS=(benches/load cli)
# Crates without tests of their own, built by whoever needs them.
UNTESTED=(simulation benches/core benches/floor)
# Split on purpose: several flags in one variable.
read -ra CARGO_FLAGS_LIST <<<"${CARGO_FLAGS:-}"

say() { printf '==> %s\n' "$*" >&2; }

die() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }

# The program that merges what a build for profile-guided optimisation has counted, of the LLVM that rustc is made with:
# rustup has it as a component, Debian as a package. Fails where there is none.
llvm_profdata() {
    local host found
    host=$(rustc -vV | sed -n 's/^host: //p')
    for found in "$(rustc --print sysroot)/lib/rustlib/$host/bin/llvm-profdata" \
        "/usr/lib/llvm-$(llvm_version)/bin/llvm-profdata"; do
        [ ! -x "$found" ] || { echo "$found" && return; }
    done
    return 1
}

# The major version of rustc's LLVM.
llvm_version() { rustc -vV | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p'; }

# Builds the module as others should get it: by profile-guided optimisation, or without where its tools are not to be
# had. MODULE is then where it is, and BUILT says how.
build_for_others() {
    if scripts/setup.sh build pgo; then
        scripts/build-pgo.sh
        MODULE=$PGO_MODULE BUILT="profile-guided optimisation (\`make build-pgo\`)"
    else
        say "no llvm-profdata of LLVM $(llvm_version) is to be had: going on without profile-guided optimisation"
        scripts/build.sh
        BUILT="\`make build\`"
    fi
}

# Runs cargo for one of PROGRAMS: cargo_of DIRECTORY SUBCOMMAND [OPTION...]
cargo_of() {
    local program=$1 subcommand=$2
    shift 2
    cargo "$subcommand" --manifest-path "$program/Cargo.toml" --target-dir "$TARGET/$(basename "$program")" \
        "${CARGO_FLAGS_LIST[@]}" "$@"
}
