#!/usr/bin/env bash
# Tests the packages of `make dist` on minimal Debian systems without a compiler, as the documentation describes:
# installs the package with apt-get, and unpacks the tar.gz. A message must go through a queue, and `dq` must show it.
#
#   scripts/install-tests/packages.sh [RELEASE...]      default: bookworm trixie
#
# ARCH names the processor (amd64, arm64; default: this machine's). Another one is emulated by qemu-user-static.

set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/lib/common.sh
. scripts/lib/reproducible.sh
. scripts/lib/bare-system.sh

DIST=${DIST:-dist}
PORT=${PORT:-7390}
VERSION=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
ARCH=${ARCH:-$(dpkg --print-architecture)}
PACKAGE=$DIST/redis-dq_${VERSION}_$ARCH.deb
[ -f "$PACKAGE" ] || die "there is no $PACKAGE: make dist first"
can_run "$ARCH"
[ $# -gt 0 ] || set -- bookworm trixie

# Waits until the server in a system replies.
answers() {
    local root=$1
    # An emulated system is slow.
    for _ in $(seq 300); do
        [ "$(in_root "$root" redis-cli -p "$PORT" PING 2>/dev/null)" != PONG ] || return 0
        sleep 0.1
    done
    die "the server does not answer"
}

# Checks that a message goes through a queue and that the terminal program shows it: works ROOT DQ
works() {
    local root=$1 dq=$2 got
    answers "$root"
    in_root "$root" redis-cli -p "$PORT" DQ.SEND mails "welcome ann" ID ann-1 >/dev/null
    in_root "$root" "$dq" --url "redis://127.0.0.1:$PORT" ls | grep -q mails || die "dq ls does not show the queue"
    got=$(in_root "$root" redis-cli -p "$PORT" DQ.FETCH mails)
    case $got in
    *"welcome ann"*) ;;
    *) die "DQ.FETCH says: $got" ;;
    esac
    stop "$root"
}

stop() { in_root "$1" redis-cli -p "$PORT" SHUTDOWN NOSAVE >/dev/null 2>&1 || true; }

# Checks that the systemd unit of the server's package allows the server to load the module from its installed path.
unit_allows() {
    local unit=$1 path=$2 allowed place
    [ -e "$unit" ] || die "the server's package has no unit $unit"
    grep -q '^NoExecPaths=/$' "$unit" || return 0
    allowed=$(sed -n 's/^ExecPaths=//p' "$unit")
    for place in $allowed; do
        case $path in "$place"/*) return 0 ;; esac
    done
    die "$unit allows $allowed only, and the module is $path"
}

for release; do
    root=$(fresh_root "$release" package)
    trap 'stop "$root" && leave_root "$root"' EXIT
    say "$release: installing the package"
    cp "$PACKAGE" "$root/tmp/"
    in_root "$root" apt-get -qq update
    in_root "$root" sh -c 'apt-get -qq install -y --no-install-recommends /tmp/redis-dq_*.deb' >"$root/install.log" 2>&1 ||
        { cat "$root/install.log" && die "apt-get does not install the package"; }
    ! in_root "$root" sh -c 'command -v cc || command -v cargo' || die "a compiler came along"
    in_root "$root" sh -c 'echo "include /etc/redis/dq.conf" >>/etc/redis/redis.conf'
    in_root "$root" setpriv --reuid redis --regid redis --clear-groups \
        redis-server /etc/redis/redis.conf --port "$PORT" --daemonize yes >/dev/null
    works "$root" dq
    unit_allows "$root/lib/systemd/system/redis-server.service" /usr/lib/redis/modules/libdq.so

    say "$release: unpacking the tar.gz"
    tar -xzf "$DIST/dq-$VERSION-linux-$ARCH.tar.gz" -C "$root/root"
    in_root "$root" sh -c 'cd /root/dq-*/ && sha256sum --quiet -c SHA256SUMS && mkdir -p data/6379 &&
        redis-server redis.conf --port '"$PORT"' --daemonize yes >/dev/null'
    works "$root" "/$(cd "$root" && echo root/dq-*/bin/dq)"

    remove_root "$root"
    trap - EXIT
    say "$release, $ARCH: the package and the tar.gz work"
done
