# shellcheck shell=bash Functions for minimal Debian systems (debootstrap's minbase), to test what a new user would do.
# Other scripts source it after common.sh and reproducible.sh.

# The minimal systems are kept here between runs. The tests run in copies of them.
FRESH=${FRESH:-/var/tmp/dq-fresh}
MIRROR=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
UBUNTU_MIRROR=${UBUNTU_MIRROR:-http://archive.ubuntu.com/ubuntu}

# Makes a minimal system in a directory: bare_system ARCH RELEASE DIRECTORY
bare_system() {
    local options=(--arch="$1" --variant=minbase --include=ca-certificates)
    case $2 in
    focal | jammy | noble)
        # Debian 12 has neither the keys of Ubuntu's archive nor a script for its newest releases, which is the same for all.
        debootstrap "${options[@]}" --components=main,universe --no-check-gpg "$2" "$3" "$UBUNTU_MIRROR" \
            /usr/share/debootstrap/scripts/jammy
        ;;
    *) debootstrap "${options[@]}" "$2" "$3" "$MIRROR" ;;
    esac
}

# Ends with advice, if this machine cannot run programs of a processor: can_run ARCH
can_run() {
    [ "$1" != "$(dpkg --print-architecture)" ] || return 0
    # The interpreter is opened when it is registered (F), so it also works where its file cannot be seen.
    grep -qsE '^flags: .*F' "/proc/sys/fs/binfmt_misc/qemu-$(rust_target "$1" | cut -d- -f1)" ||
        die "this machine does not run programs of $1: apt-get install qemu-user-static, and mount binfmt_misc if it is not"
}

# Copies the minimal system of a release of Debian or Ubuntu (trixie, noble), which it makes if needed. Prints the path of the copy.
# ARCH names the processor, by default this machine's.
# fresh_root RELEASE NAME
fresh_root() {
    local release=$1 arch=${ARCH:-$(dpkg --print-architecture)} root bare=$FRESH/$1
    [ "$arch" = "$(dpkg --print-architecture)" ] || bare=$bare-$arch
    root=$bare-$2
    [ "$(id -u)" -eq 0 ] || die "bare systems are made by root only: run it as root or in a container"
    have debootstrap || die "debootstrap makes the bare systems: apt-get install debootstrap"
    mkdir -p "$FRESH"
    if [ ! -e "$bare/ready" ]; then
        say "making a bare $release in $bare"
        remove_root "$bare"
        bare_system "$arch" "$release" "$bare" >"$bare.log" 2>&1 ||
            die "debootstrap failed: $bare.log says why"
        touch "$bare/ready"
    fi
    remove_root "$root"
    cp -a "$bare" "$root"
    hand_in_network "$root"
    # No package may start a service, because in a chroot it would listen on the ports of this machine.
    printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
    chmod 755 "$root/usr/sbin/policy-rc.d"
    mount --bind /proc "$root/proc"
    # This includes the terminals in /dev/pts.
    mount --rbind /dev "$root/dev"
    mount --make-rslave "$root/dev"
    echo "$root"
}

# Copies the machine's settings for reaching the archives of Debian, crates and Python (proxies, certificates), which
# are not under test.
hand_in_network() {
    local root=$1 file
    cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
    [ ! -f /etc/ssl/certs/ca-certificates.crt ] || cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
    while IFS= read -r file; do
        cp "$file" "$root/etc/apt/apt.conf.d/"
    done < <(grep -lsE '^ *Acquire::(https?|Check-[A-Za-z-]+|Retries)\b' /etc/apt/apt.conf.d/* || true)
    for file in /etc/pip.conf "$HOME/.config/pip/pip.conf" "$HOME/.pip/pip.conf"; do
        [ ! -f "$file" ] || cp "$file" "$root/etc/pip.conf"
    done
    [ ! -f "$HOME/.cargo/config.toml" ] || install -D "$HOME/.cargo/config.toml" "$root/root/.cargo/config.toml"
}

# Prints the environment variables for reaching them, one per line.
network_variables() {
    env | grep -E '^(https?_proxy|no_proxy|all_proxy|HTTPS?_PROXY|NO_PROXY|ALL_PROXY|PIP_(INDEX_URL|EXTRA_INDEX_URL|PROXY|TRUSTED_HOST|DEFAULT_TIMEOUT)|CARGO_(HTTP|NET)_[A-Z_]+)=' || true
    echo PIP_CERT=/etc/ssl/certs/ca-certificates.crt
    echo CARGO_HTTP_CAINFO=/etc/ssl/certs/ca-certificates.crt
}

# Runs a command in a system, with an environment of its own: in_root ROOT [NAME=VALUE...] COMMAND [WORD...]
in_root() {
    local root=$1 variables
    shift
    mapfile -t variables < <(network_variables)
    chroot "$root" env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb \
        DEBIAN_FRONTEND=noninteractive "${variables[@]}" "$@"
}

# Unmounts what fresh_root has mounted.
leave_root() {
    local place
    for place in "$1/proc" "$1/dev"; do
        ! mountpoint -q "$place" 2>/dev/null || umount -Rl "$place" || die "$place cannot be unmounted"
    done
}

# Deletes a system. It first unmounts what fresh_root has mounted. Mounts of other programs, and this machine's /dev,
# must not be deleted. So the system is not deleted while any mount is left in it.
remove_root() {
    local root left
    root=$(realpath -m "$1")
    leave_root "$root"
    left=$(awk -v root="$root/" 'index($5 "/", root) == 1 { print $5 }' /proc/self/mountinfo)
    [ -z "$left" ] || die "nothing is deleted, because these are still mounted: $left"
    rm -rf --one-file-system "$root"
}
