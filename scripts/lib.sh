# shellcheck shell=bash disable=SC2034
# Functions and variables for the other scripts, which source it in the root of the repository.

# If rustup was installed only now, its programs are not yet on the PATH of this shell.
if [ -x "${HOME:-}/.cargo/bin/cargo" ]; then
    case :$PATH: in
    *":$HOME/.cargo/bin:"*) ;;
    *) PATH=$HOME/.cargo/bin:$PATH ;;
    esac
fi

# Prints an absolute path of a file that need not exist. Only GNU's realpath could do that.
absolute() {
    case $1 in
    /*) echo "$1" ;;
    *) echo "$PWD/$1" ;;
    esac
}

REDIS_SERVER=${REDIS_SERVER:-redis-server}
# The Python for the environment of the tests, and the oldest version that the tests can use.
PYTHON=${PYTHON:-python3}
PYTHON_NEEDED=3.10
VENV=.venv
TARGET=$(absolute "${CARGO_TARGET_DIR:-target}")
# scripts/setup.sh may have put a redis-server here.
PATH=$PATH:$TARGET/bin
MODULE=$TARGET/release/libdq.so
# The module with profile-guided optimisation, if it was built.
PGO_MODULE=$TARGET/pgo/libdq.so
# The other programs with tests. They are separate workspaces, so the module does not get their dependencies. Each is
# built in a directory with its name below the module's.
PROGRAMS=(benches/load cli)
# The other programs without tests. The scripts that need them build them.
UNTESTED=(benches/floor)
# CARGO_FLAGS may contain several flags, so it is split. The list has a flag without effect, because the bash of macOS
# treats an empty list as an unset variable.
read -ra CARGO_FLAGS_LIST <<<"--color=auto ${CARGO_FLAGS:-}"

say() { printf '==> %s\n' "$*" >&2; }

die() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }

# Whether the version $1 is $2 or newer. A suffix (-nightly) is ignored.
at_least() {
    local found needed i
    IFS=. read -ra found <<<"${1%%[!0-9.]*}"
    IFS=. read -ra needed <<<"$2"
    for i in 0 1 2; do
        [ "${found[i]:-0}" -eq "${needed[i]:-0}" ] || break
    done
    [ "${found[i]:-0}" -ge "${needed[i]:-0}" ]
}

# Prints the oldest Rust that builds everything: rust-version in Cargo.toml, which scripts/rust-version.sh checks.
rust_needed() { sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml; }

# Exits with instructions if there is no Rust or it is too old. Call it before anything is installed or compiled.
need_rust() {
    local needed found todo rustup="curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh"
    needed=$(rust_needed)
    # The output is empty if rustup has no default toolchain.
    found=$(have cargo && rustc --version 2>/dev/null | cut -d ' ' -f 2) || true
    at_least "${found:-0}" "$needed" && return
    have curl || ! have apt-get || rustup="apt-get install -y curl && $rustup"
    todo="install it with rustup and try again: $rustup"
    ! have rustup || todo="run \`rustup update stable && rustup default stable\` and try again"
    [ -n "$found" ] || die "dq is built with Rust $needed or newer, and none is here: $todo"
    die "dq is built with Rust $needed or newer, and $(command -v rustc) is $found: $todo"
}

# Exits with instructions if the server is too old to load the module.
need_server_version() {
    local version
    # The output is "Redis server v=7.0.15 sha=...". Any other output is accepted.
    version=$("$REDIS_SERVER" --version 2>/dev/null | sed -nE 's/^(Redis|Valkey) server v=([0-9.]+).*/\2/p') || true
    at_least "${version:-7.0}" 7.0 ||
        die "dq needs Redis 7.0 or newer, or Valkey, and $(command -v "$REDIS_SERVER") is $version: name a newer one with REDIS_SERVER=/path/to/redis-server"
}

# Exits with instructions if Python is too old for the tests.
need_python() {
    local found
    found=$("$PYTHON" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])')
    at_least "$found" "$PYTHON_NEEDED" ||
        die "the tests need Python $PYTHON_NEEDED or newer, and $(command -v "$PYTHON") is $found: name a newer one with PYTHON=python3.12"
}

# Prints the path of llvm-profdata, which merges the counts for profile-guided optimisation. It must be of the LLVM
# version of rustc. rustup has it as a component, Debian as a package. Fails if there is none.
llvm_profdata() {
    local host found
    host=$(rustc -vV | sed -n 's/^host: //p')
    for found in "$(rustc --print sysroot)/lib/rustlib/$host/bin/llvm-profdata" \
        "/usr/lib/llvm-$(llvm_version)/bin/llvm-profdata"; do
        [ ! -x "$found" ] || { echo "$found" && return; }
    done
    return 1
}

# Prints the major version of rustc's LLVM.
llvm_version() { rustc -vV | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p'; }

# Builds the module for a release: with profile-guided optimisation, or without it if its tools are not available. Sets
# MODULE to the path and BUILT to a description of the build.
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

# Locks the file that a file descriptor is open on, until every process that has inherited the descriptor has ended.
# Fails if another process has the lock.
lock_file() {
    if have flock; then
        flock -n "$1"
    else
        # macOS has no flock program.
        perl -e 'use Fcntl ":flock"; open(my $file, ">>&=", $ARGV[0]) or exit 1; exit !flock($file, LOCK_EX | LOCK_NB)' "$1"
    fi
}

. scripts/packages.sh
greet
