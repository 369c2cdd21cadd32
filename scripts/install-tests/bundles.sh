#!/usr/bin/env bash
# Measures how long it takes from nothing to a message that is delivered, with each bundle of `make bundle`, on minimal
# Debian and Ubuntu systems (scripts/lib/bare-system.sh), as an ordinary user without a network: all files are local.
#
#   scripts/install-tests/bundles.sh [RELEASE...]      default: bullseye bookworm trixie jammy noble
#
# The systems have Python with its venv, and Node with npm, where those are under test, and no compiler and no server. They
# need root, debootstrap and ip (iproute2). The bundle for musl is tried by scripts/install-tests/bundles-musl.sh.
#
# LIMIT (30) is how many seconds each may take. DIST names the directory of the bundles.

set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/lib/common.sh
. scripts/lib/reproducible.sh
. scripts/lib/bare-system.sh

DIST=$(absolute "${DIST:-dist}")
LIMIT=${LIMIT:-30}
VERSION=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
ARCH=$(dpkg --print-architecture)
BUNDLE=$DIST/dq-server-$VERSION-linux-$ARCH
[ -f "$BUNDLE.tar.gz" ] || die "there is no $BUNDLE.tar.gz: make bundle first"
have ip || die "ip gives the systems a network of their own: apt-get install iproute2"
NPM=dq-server-linux-$([ "$ARCH" = amd64 ] && echo x64 || echo "$ARCH")
[ $# -gt 0 ] || set -- bullseye bookworm trixie jammy noble

# Whether the Node of a release is one that the npm package works with, 18 or newer: has_node RELEASE
has_node() {
    case $1 in bullseye | focal | jammy) return 1 ;; esac
}

# Runs a line of shell as the user ann of the system, in her home, with no network but the loopback: as_ann ROOT LINE
as_ann() {
    unshare --net sh -c 'ip link set lo up && exec chroot "$@"' sh "$1" \
        env -i HOME=/home/ann PATH=/usr/local/bin:/usr/bin:/bin npm_config_update_notifier=false \
        setpriv --reuid 1000 --regid 1000 --clear-groups sh -ec "cd /home/ann && $2"
}

# Runs the steps of one way of installing, which must print the payload, and reports the time: measure ROOT NAME LINE
measure() {
    local root=$1 name=$2 line=$3 began took said
    began=$(date +%s%N)
    said=$(as_ann "$root" "$line" 2>"$root/tmp/errors") || { cat "$root/tmp/errors" >&2 && die "$release: $name failed: $said"; }
    took=$((($(date +%s%N) - began) / 1000000))
    case $said in *"welcome ann"*) ;; *) die "$release: $name delivered nothing: $said" ;; esac
    table+=("$(printf '%-10s %-8s %3d.%d s' "$release" "$name" $((took / 1000)) $((took / 100 % 10)))")
    [ "$took" -lt $((LIMIT * 1000)) ] || die "$release: $name took $took ms"
}

# A server with its data in the home of the user, which is stopped after the message: with_server DQ LINE
with_server() {
    cat <<SHELL
rm -f log
$1 server --port 7391 >log 2>&1 & server=\$!
for i in \$(seq 300); do grep -q 'is ready' log && break; sleep 0.05; done
$2
kill \$server; wait \$server
SHELL
}

# Makes a system of a release for the user ann: new_system RELEASE [PACKAGE...]
new_system() {
    root=$(fresh_root "$1" bundle)
    shift
    if [ $# -gt 0 ]; then
        in_root "$root" sh -c "apt-get -qq update && apt-get -qq install -y --no-install-recommends $*" >"$root/install.log" 2>&1 ||
            { tail "$root/install.log" >&2 && die "these cannot be installed: $*"; }
    fi
    in_root "$root" useradd --uid 1000 --create-home ann
    mkdir "$root/files"
    cp "$DIST"/dq-server*gz "$DIST"/dq_server*.whl "$root/files/"
}

python_send='import socket; s = socket.create_connection(("127.0.0.1", 7391)); s.sendall(b"DQ.SEND mails \"welcome ann\"\r\nDQ.FETCH mails\r\n"); import time; time.sleep(0.2); print(s.recv(9999))'
node_send='const {startServer} = require("dq-server"); startServer().then(({url, stop}) => { const s = require("net").connect(new URL(url).port, "127.0.0.1"); s.write("DQ.SEND mails \"welcome ann\"\r\nDQ.FETCH mails\r\n"); let said = ""; s.on("data", (d) => { said += d; if (said.includes("welcome ann")) { console.log(said); s.destroy(); stop(); } }); });'

table=()
for release; do
    root=
    trap '[ -z "$root" ] || leave_root "$root"' EXIT
    packages=(python3 python3-venv)
    ! has_node "$release" || packages+=(nodejs)
    say "$release: a bare system with ${packages[*]}"
    new_system "$release" "${packages[@]}"
    cli="/home/ann/dq-server-$VERSION-linux-$ARCH/libexec/dq/valkey-cli -p 7391"
    measure "$root" tar.gz "tar -xzf /files/dq-server-$VERSION-linux-$ARCH.tar.gz
$(with_server "dq-server-$VERSION-linux-$ARCH/bin/dq" "$cli DQ.SEND mails 'welcome ann' >/dev/null; $cli DQ.FETCH mails")"
    measure "$root" pip "python3 -m venv venv
venv/bin/pip install --quiet --no-index --find-links /files dq-server
$(with_server venv/bin/dq "python3 -c '$python_send'")"
    if has_node "$release"; then
        # Debian's npm depends on some hundred packages, so the npm of this machine is used, as with Node from other
        # sources.
        mkdir -p "$root/usr/local/lib/node_modules"
        cp -a "$(npm root --global)/npm" "$root/usr/local/lib/node_modules/"
        ln -s ../lib/node_modules/npm/bin/npm-cli.js "$root/usr/local/bin/npm"
        measure "$root" npm "mkdir shop && cd shop
npm install --silent --offline --no-audit --no-fund /files/dq-server-$VERSION.tgz /files/$NPM-$VERSION.tgz
node -e '$node_send'"
    fi
    remove_root "$root"
done
printf '%s\n' "${table[@]}"
say "from nothing to a message, each in less than $LIMIT s"
