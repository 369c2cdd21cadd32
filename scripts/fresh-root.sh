# shellcheck shell=bash
# Bare Debian systems to try things in, as a new user has them: nothing but what debootstrap calls minbase. Sourced, after
# lib.sh, by the scripts that try.

# Where the bare systems are kept between runs; what is tried happens in copies of them.
FRESH=${FRESH:-/var/tmp/dq-fresh}

# Makes, or finds, the bare system of a release (bookworm, trixie), copies it, and prints where the copy is.
# fresh_root RELEASE NAME
fresh_root() {
    local release=$1 root=$FRESH/$1-$2 bare=$FRESH/$1
    [ "$(id -u)" -eq 0 ] || die "bare systems are made by root only: run it as root or in a container"
    have debootstrap || die "debootstrap makes the bare systems: apt-get install debootstrap"
    mkdir -p "$FRESH"
    if [ ! -e "$bare/ready" ]; then
        say "making a bare Debian $release in $bare"
        rm -rf "$bare"
        debootstrap --variant=minbase --include=ca-certificates "$release" "$bare" >"$bare.log" 2>&1 ||
            die "debootstrap failed: $bare.log says why"
        touch "$bare/ready"
    fi
    leave_root "$root"
    rm -rf "$root"
    cp -a "$bare" "$root"
    # How this machine reaches the archives, and whose certificates it trusts, is no part of what is tried.
    cp /etc/resolv.conf /etc/hosts "$root/etc/"
    cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
    # No package may start a service: in a changed root it would listen on the ports of this machine.
    printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
    chmod 755 "$root/usr/sbin/policy-rc.d"
    mount --bind /proc "$root/proc"
    mount --bind /dev "$root/dev"
    echo "$root"
}

# Runs a command in a bare system, with an environment of its own: in_root ROOT COMMAND [WORD...]
in_root() {
    local root=$1
    shift
    env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 TERM=dumb \
        DEBIAN_FRONTEND=noninteractive PIP_CERT=/etc/ssl/certs/ca-certificates.crt \
        CARGO_HTTP_CAINFO=/etc/ssl/certs/ca-certificates.crt chroot "$root" "$@"
}

# Lets go of what fresh_root has mounted.
leave_root() {
    local place
    for place in "$1/proc" "$1/dev"; do
        ! mountpoint -q "$place" 2>/dev/null || umount -l "$place"
    done
}
