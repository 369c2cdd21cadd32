#!/usr/bin/env bash
# Tries the bundle for musl on a system that has nothing but musl's loader and busybox, as an ordinary user: a message must
# go through a queue. Both come from Debian's packages, which are only unpacked; it is not Alpine, whose archive may not be
# reached from everywhere. Needs root, for chroot.

set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/lib/common.sh

DIST=$(absolute "${DIST:-dist}")
VERSION=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
NAME=dq-server-$VERSION-linux-$(dpkg --print-architecture)-musl
[ -f "$DIST/$NAME.tar.gz" ] || die "there is no $DIST/$NAME.tar.gz: make bundle first"
[ "$(id -u)" -eq 0 ] || die "this needs root, for chroot"
root=$(mktemp -d)
trap 'umount -l "$root/proc" 2>/dev/null || true; rm -rf --one-file-system "$root"' EXIT
(cd "$root" && apt-get -qq -o APT::Sandbox::User=root download musl busybox-static)
for package in "$root"/*.deb; do dpkg-deb --extract "$package" "$root"; done
mkdir -p "$root"/{proc,tmp,bin,home/ann,dev}
chmod 1777 "$root/tmp"
mknod -m 666 "$root/dev/null" c 1 3
mknod -m 444 "$root/dev/urandom" c 1 9
# The program is in /bin, and in /usr/bin in newer releases of Debian.
[ -x "$root/bin/busybox" ] || cp "$root/usr/bin/busybox" "$root/bin/busybox"
ln -sf busybox "$root/bin/sh"
cp "$DIST/$NAME.tar.gz" "$root/tmp/"
chown 1000:1000 "$root/home/ann"
mount --bind /proc "$root/proc"
said=$(unshare --net sh -c 'ip link set lo up && exec chroot --userspec 1000:1000 "$@"' sh "$root" /bin/sh -ec "
    export HOME=/home/ann PATH=/bin && cd /home/ann
    busybox tar -xzf /tmp/$NAME.tar.gz
    $NAME/bin/dq server --port 7391 >log 2>&1 & server=\$!
    for i in \$(busybox seq 300); do busybox grep -q 'is ready' log && break; busybox sleep 0.1; done
    cli=\"$NAME/libexec/dq/valkey-cli -p 7391\"
    \$cli DQ.SEND mails 'welcome ann' >/dev/null
    \$cli DQ.FETCH mails || busybox cat log
    kill \$server && wait \$server")
case $said in
*"welcome ann"*) say "with musl a message goes through a queue" ;;
*) die "with musl: $said" ;;
esac
