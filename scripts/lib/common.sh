# shellcheck shell=bash disable=SC2034
# Shared by the scripts beside it; sourced from the root of the repository.

# A program that rustup installed a moment ago is not on the PATH of the shell that installed it.
if [ -x "${HOME:-}/.cargo/bin/cargo" ]; then
    case :$PATH: in
    *":$HOME/.cargo/bin:"*) ;;
    *) PATH=$HOME/.cargo/bin:$PATH ;;
    esac
fi

# The absolute path of a file that need not exist. Only GNU's realpath has an option for that.
absolute() {
    case $1 in
    /*) echo "$1" ;;
    *) echo "$PWD/$1" ;;
    esac
}

REDIS_SERVER=${REDIS_SERVER:-redis-server}
# The Python of the tests' environment, and the oldest version that the tests need.
PYTHON=${PYTHON:-python3}
PYTHON_NEEDED=3.10
VENV=.venv
TARGET=$(absolute "${CARGO_TARGET_DIR:-target}")
# A redis-server of scripts/setup.sh's.
PATH=$PATH:$TARGET/bin
MODULE=$TARGET/release/libdq.so
# The module that was built by profile-guided optimisation, if it was.
PGO_MODULE=$TARGET/pgo/libdq.so
CHECKED_MODULE=$TARGET/checked/libdq.so
# The programs beside the module are workspaces of their own, so that their dependencies stay out of it. Each is built
# in a directory of its name below the module's.
PROGRAMS=(benches/load cli)
# Split on purpose: several flags in one variable. With a flag that changes nothing, for the bash of macOS takes an empty
# list for a variable that is not set.
read -ra CARGO_FLAGS_LIST <<<"--color=auto ${CARGO_FLAGS:-}"

say() { printf '==> %s\n' "$*" >&2; }

die() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }

# Whether the version $1 is as new as $2. The text after the numbers (-nightly) does not count.
at_least() {
    local found needed i
    IFS=. read -ra found <<<"${1%%[!0-9.]*}"
    IFS=. read -ra needed <<<"$2"
    for i in 0 1 2; do
        [ "${found[i]:-0}" -eq "${needed[i]:-0}" ] || break
    done
    [ "${found[i]:-0}" -ge "${needed[i]:-0}" ]
}

# The oldest Rust that builds everything here: rust-version in Cargo.toml, which scripts/rust-version.sh checks.
rust_needed() { sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml; }

# Ends with advice if there is no Rust, or one that is too old, before anything is installed or compiled.
need_rust() {
    local needed found todo rustup="curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh"
    needed=$(rust_needed)
    # The output is empty if rustup has no default Rust.
    found=$(have cargo && rustc --version 2>/dev/null | cut -d ' ' -f 2) || true
    at_least "${found:-0}" "$needed" && return
    have curl || ! have apt-get || rustup="apt-get install -y curl && $rustup"
    todo="install it with rustup and try again: $rustup"
    ! have rustup || todo="run \`rustup update stable && rustup default stable\` and try again"
    [ -n "$found" ] || die "dq is built with Rust $needed or newer, and none is here: $todo"
    die "dq is built with Rust $needed or newer, and $(command -v rustc) is $found: $todo"
}

# Ends with advice if the server is too old to load the module.
need_server_version() {
    local version
    # "Redis server v=7.0.15 sha=..."; other texts are not checked.
    version=$("$REDIS_SERVER" --version 2>/dev/null | sed -nE 's/^(Redis|Valkey) server v=([0-9.]+).*/\2/p') || true
    at_least "${version:-7.0}" 7.0 ||
        die "dq needs Redis 7.0 or newer, or Valkey, and $(command -v "$REDIS_SERVER") is $version: name a newer one with REDIS_SERVER=/path/to/redis-server"
}

# Ends with advice if Python is too old for the tests.
need_python() {
    local found
    found=$("$PYTHON" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])')
    at_least "$found" "$PYTHON_NEEDED" ||
        die "the tests need Python $PYTHON_NEEDED or newer, and $(command -v "$PYTHON") is $found: name a newer one with PYTHON=python3.12"
}

# The program that merges the counts of a build for profile-guided optimisation, from the LLVM of rustc: rustup has it
# as a component, Debian as a package. Fails where there is none.
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

# Builds the module for users: by profile-guided optimisation, or without it if its tools are not available. MODULE is
# then where it is, and BUILT says how.
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

# Builds the module for a benchmark with these arguments, like build_for_others. A smoke test of a benchmark takes the
# module that tests run. BESIDE is the profile of the programs that a benchmark needs beside the module: `dev` for a
# smoke test, since link-time optimisation takes longer than that runs.
build_for_benchmark() {
    BESIDE=release
    case " $* " in
    *" --smoke "* | *" --quick "*)
        scripts/build.sh --checked
        BESIDE=dev
        MODULE=$CHECKED_MODULE BUILT="debug assertions (\`scripts/build.sh --checked\`)"
        ;;
    *) build_for_others ;;
    esac
}

# Runs cargo for one of PROGRAMS: cargo_of DIRECTORY SUBCOMMAND [OPTION...]
cargo_of() {
    local program=$1 subcommand=$2
    shift 2
    cargo "$subcommand" --manifest-path "$program/Cargo.toml" --target-dir "$TARGET/$(basename "$program")" \
        "${CARGO_FLAGS_LIST[@]}" "$@"
}

# Locks the file of the file descriptor until every process that has it open has ended. Fails if another process has the
# lock.
lock_file() {
    if have flock; then
        flock -n "$1"
    else
        # macOS.
        perl -e 'use Fcntl ":flock"; open(my $file, ">>&=", $ARGV[0]) or exit 1; exit !flock($file, LOCK_EX | LOCK_NB)' "$1"
    fi
}

. scripts/lib/packages.sh
greet
