#!/usr/bin/env bash
# Installs what a target needs and does not find; does nothing, and says nothing, where all is there.
#
#   scripts/setup.sh PART...
#
#   build    a C compiler and libclang (the Redis module bindings are generated at build time)
#   server   redis-server and redis-cli
#   tests    the Python environment .venv with tests/requirements.txt; the languages of the example clients; tmux;
#            Prometheus and its exporter for Redis, in .venv/bin, where apt has them
#   lint     rustfmt, clippy, and .venv for ruff
#   pgo      llvm-profdata, of the LLVM that rustc is made with
#   cxx      a C++ compiler, for libFuzzer
#   fuzz     cargo-fuzz, the nightly Rust that its sanitizers need, and a C++ compiler
#
# System packages come from apt: as root directly, otherwise through sudo.

set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

apt_updated=no

apt_install() {
    have apt-get || die "please install these, there is no apt-get here: $*"
    local as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        have sudo || die "please install these as root, there is no sudo here: apt-get install $*"
        as_root=(sudo)
    fi
    say "installing with apt-get: $*"
    if [ "$apt_updated" = no ]; then
        "${as_root[@]}" apt-get -qq -o Acquire::Retries=3 update
        apt_updated=yes
    fi
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get -qq -o Acquire::Retries=3 install -y --no-install-recommends "$@" >/dev/null
}

# libclang is a library, so there is no command to look for: ask the linker's cache, then the places LLVM packages use.
has_libclang() {
    [ -n "${LIBCLANG_PATH:-}" ] && return 0
    # Not grep -q: it ends at the first match, and the writer's broken pipe would count as a failure.
    ldconfig -p 2>/dev/null | grep 'libclang[-.]' >/dev/null && return 0
    compgen -G '/usr/lib/llvm-*/lib/libclang*.so*' >/dev/null
}

# libclang also needs the compiler's own headers (stddef.h), which Debian packages apart from it.
has_clang_headers() {
    [ -n "${LIBCLANG_PATH:-}" ] && return 0
    compgen -G '/usr/lib/llvm-*/lib/clang/*/include/stddef.h' >/dev/null ||
        compgen -G '/usr/lib*/clang/*/include/stddef.h' >/dev/null
}

setup_build() {
    have cargo || die "cargo not found: install Rust first, see https://rustup.rs"
    local missing=()
    have cc || missing+=(gcc libc6-dev)
    { has_libclang && has_clang_headers; } || missing+=(clang libclang-dev)
    [ ${#missing[@]} -eq 0 ] || apt_install "${missing[@]}"
}

setup_server() {
    have "$REDIS_SERVER" && have redis-cli && return
    apt_install redis-server redis-tools
    # The package starts a server of its own, without the module, on the port that `make run` wants. It was installed
    # a moment ago and by us, so nothing can depend on it yet.
    say "stopping the server that the package redis-server starts by itself"
    local as_root=()
    [ "$(id -u)" -eq 0 ] || as_root=(sudo)
    if [ -d /run/systemd/system ]; then
        "${as_root[@]}" systemctl --quiet disable --now redis-server || true
    elif [ -x /etc/init.d/redis-server ]; then
        "${as_root[@]}" /etc/init.d/redis-server stop >/dev/null 2>&1 || true
    fi
}

setup_venv() {
    local wanted
    wanted=$(sha256sum tests/requirements.txt)
    [ -x "$VENV/bin/python" ] && [ "$(cat "$VENV/requirements.sha256" 2>/dev/null)" = "$wanted" ] && return
    python3 -c '' 2>/dev/null || apt_install python3
    # Debian splits venv's bootstrap off into a package of its own.
    python3 -c 'import ensurepip, venv' 2>/dev/null || apt_install python3-venv
    say "creating the Python environment $VENV from tests/requirements.txt"
    python3 -m venv --clear "$VENV"
    "$VENV/bin/python" -m pip install --quiet --disable-pip-version-check --requirement tests/requirements.txt
    echo "$wanted" >"$VENV/requirements.sha256"
}

# Taken out of their packages: installing those would start services of theirs. The tests go without where that fails.
setup_prometheus() {
    local bin=$VENV/bin unpacked
    [ -x "$bin/promtool" ] && [ -x "$bin/prometheus" ] && [ -x "$bin/prometheus-redis-exporter" ] && return
    say "fetching Prometheus for the tests of monitoring/"
    unpacked=$(mktemp -d)
    if (
        cd "$unpacked"
        apt-get -qq -o Acquire::Retries=3 -o APT::Sandbox::User=root download prometheus prometheus-redis-exporter &&
            for package in *.deb; do dpkg-deb --extract "$package" . || exit; done
    ); then
        cp "$unpacked"/usr/bin/{promtool,prometheus,prometheus-redis-exporter} "$bin"
    else
        say "apt-get cannot fetch it: the tests that need it will be skipped"
    fi
    rm -rf "$unpacked"
}

setup_tests() {
    setup_venv
    local missing=()
    php -r 'exit(extension_loaded("redis") ? 0 : 1);' 2>/dev/null || missing+=(php-cli php-redis)
    # A node from elsewhere has an npm of its own, which Debian's would fight with.
    have node || missing+=(nodejs npm)
    have go || missing+=(golang-go)
    [ -d /usr/share/gocode/src/gopkg.in/redis.v5 ] || missing+=(golang-gopkg-redis.v5-dev)
    have redis-cli || missing+=(redis-tools)
    have tmux || missing+=(tmux)
    [ ${#missing[@]} -eq 0 ] || apt_install "${missing[@]}"
    setup_prometheus
}

setup_lint() {
    local missing=()
    cargo fmt --version >/dev/null 2>&1 || missing+=(rustfmt)
    cargo clippy --version >/dev/null 2>&1 || missing+=(clippy)
    if [ ${#missing[@]} -gt 0 ]; then
        have rustup || die "please install for your Rust: ${missing[*]}"
        say "installing with rustup: ${missing[*]}"
        rustup --quiet component add "${missing[@]}"
    fi
    setup_venv
}

setup_pgo() {
    llvm_profdata >/dev/null && return
    if have rustup; then
        say "installing with rustup: llvm-tools"
        rustup --quiet component add llvm-tools && llvm_profdata >/dev/null && return
    fi
    apt_install "llvm-$(llvm_version)"
    llvm_profdata >/dev/null || die "llvm-profdata of LLVM $(llvm_version) not found: profile-guided optimisation needs it"
}

setup_cxx() {
    have c++ || apt_install g++
}

setup_fuzz() {
    setup_build
    setup_cxx
    if ! cargo +nightly --version >/dev/null 2>&1; then
        have rustup || die "rustup not found: fuzzing needs a nightly Rust"
        say "installing with rustup: nightly"
        rustup --quiet toolchain install nightly --profile minimal
    fi
    cargo fuzz --version >/dev/null 2>&1 || cargo install --quiet --locked cargo-fuzz
}

[ $# -gt 0 ] || die "usage: scripts/setup.sh build|server|tests|lint|pgo|cxx|fuzz ..."
for part in "$@"; do
    case $part in
    build | server | tests | lint | pgo | cxx | fuzz) "setup_$part" ;;
    *) die "unknown part: $part" ;;
    esac
done
