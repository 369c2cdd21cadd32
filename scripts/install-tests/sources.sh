#!/usr/bin/env bash
# Tests what a new user would do, on minimal Debian systems (scripts/lib/bare-system.sh). They have the files of this commit
# without git, make, and from some step on Rust. Everything else must be installed by make. Needs root, for chroot and
# mounts.
#
#   scripts/install-tests/sources.sh [--short] [--optional] [RELEASE...]      default: bookworm trixie
#
#   --short       skips `make test`
#   --optional    also runs `make setup-optional`, and `make test` again with the tests that were skipped without it
#
# FRESH names the working directory, DEBIAN_MIRROR the mirror. The systems use the machine's Rust: the version in
# Cargo.toml if rustup can provide it.

set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/lib/common.sh
. scripts/lib/reproducible.sh
. scripts/lib/bare-system.sh

# ---- the system

# Makes a minimal system with make, and the files of this commit in /root/dq: new_machine NAME
new_machine() {
    root=$(fresh_root "$release" "$1")
    mkdir "$root/root/dq" "$root/opt/rust"
    tar -C "$root/root/dq" -xf "$FRESH/sources.tar"
    in_root "$root" sh -c 'apt-get -qq update && apt-get -qq install -y --no-install-recommends make' >"$log" 2>&1 ||
        failed "make cannot be installed"
}

give_rust() {
    mount --bind "$RUST" "$root/opt/rust"
    mount -o remount,bind,ro "$root/opt/rust"
}

# Runs a line of shell in the source directory: on LINE
on() {
    in_root "$root" bash -c "PATH=/opt/rust/bin:\$PATH:/root/dq/target/bin; cd /root/dq && $1" </dev/null
}

ask() { on "redis-cli -p $1 $2" 2>&1; }

leave() {
    ! mountpoint -q "$root/opt/rust" || umount -l "$root/opt/rust"
    remove_root "$root"
}

# ---- steps

step() {
    name=$1
    log=$FRESH/$release.$(tr -c 'a-z\n' - <<<"$name").log
    began=$SECONDS
    say "$release: $name"
}

# Reports that the step has passed: passed [WHAT IT SHOWED]
passed() {
    printf '%-10s %-40s %5d s  %s\n' "$release" "$name" $((SECONDS - began)) "${1:-}" >>"$FRESH/table"
}

failed() {
    [ ! -f "$log" ] || tail -n 60 "$log" >&2
    die "$release: $name: $* ($log)"
}

# Prints the installed packages and the files in the source directory.
traces() { (cd "$root" && ls var/lib/dpkg/info root/dq); }

# Without Rust, `make run` must print one sentence about it, fail, and leave no files behind.
rust_is_refused() {
    local before
    before=$(traces)
    ! on 'make run' >"$log" 2>&1 || failed "it did not fail"
    grep -v '^make: ' "$log" >"$log.said"
    [ "$(wc -l <"$log.said")" -eq 1 ] || failed "it did not say one sentence"
    grep -q "^error: dq is built with Rust $(rust_needed) or newer" "$log.said" || failed "it said something else"
    [ "$(traces)" = "$before" ] || failed "it installed or built something"
    passed "$(cut -c 1-90 "$log.said")..."
}

# Starts `make run` on a port, and returns when the server replies.
serve() {
    on "make run PORT=$1" >"$log" 2>&1 &
    local server=$!
    until ask "$1" PING | grep -q PONG; do
        kill -0 "$server" 2>/dev/null || failed "it ended"
        sleep 0.5
    done
}

# Checks that `make run` with these variables fails with this message.
is_refused() {
    ! on "make run $1" >"$log" 2>&1 || failed "it did not fail"
    grep -qF "error: $2" "$log" || failed "it did not say: $2"
    passed
}

try() {
    local release=$1 root name log began one=16379 other=17379 third=18379 port
    for port in $one $other $third; do
        ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || die "something listens on port $port, which this needs"
    done

    step "make run without Rust"
    new_machine rust
    rust_is_refused

    step "make run with Debian's own Rust"
    on 'apt-get -qq install -y --no-install-recommends cargo' >"$log" 2>&1 || failed "cargo cannot be installed"
    rust_is_refused
    leave

    step "make run"
    new_machine run
    give_rust
    serve $one
    [ "$(ask $one 'DQ.SEND mails "welcome ann" ID ann-1')" = ann-1 ] || failed "SEND"
    ask $one 'DQ.FETCH mails BLOCK 30000' | grep -q ann-1 || failed "FETCH"
    ! on 'dpkg -s redis-server' >/dev/null 2>&1 || failed "the package redis-server is installed, with its service"
    passed "$(ask $one 'INFO server' | tr -d '\r' | sed -n 's/^redis_version:/Redis /p')"

    step "another server beside it"
    serve $other
    [ "$(ask $other 'DQ.LEN mails')" = 0 ] || failed "they share their data"
    passed
    step "a taken port"
    is_refused "PORT=$one" "something listens on port $one already; take another: make run PORT=7000"
    step "a second server on the same data"
    is_refused "PORT=$third DATA=data/$one" "data/$one is in use by another server"
    ask $one SHUTDOWN >/dev/null || true
    ask $other SHUTDOWN >/dev/null || true
    leave

    if [ "$tests" = yes ]; then
        step "make test"
        new_machine test
        give_rust
        began=$SECONDS
        on 'make test' >"$log" 2>&1 || failed "it failed"
        passed "$(tail -n 1 "$log")"
    fi
    if [ "$optional" = yes ]; then
        [ "$tests" = yes ] || { step "make setup-optional" && new_machine optional && give_rust; }
        step "make setup-optional"
        on 'make setup-optional' >"$log" 2>&1 || failed "it failed"
        passed
        step "make test with all of it"
        on 'make test' >"$log" 2>&1 || failed "it failed"
        passed "$(tail -n 1 "$log")"
    fi
    leave
}

# ---- main

tests=yes optional=no releases=()
for word in "$@"; do
    case $word in
    --short) tests=no ;;
    --optional) optional=yes ;;
    --help) sed -n '2,/^$/s/^# \{0,1\}//p' "$0" && exit ;;
    -*) die "unknown option: $word (--help)" ;;
    *) releases+=("$word") ;;
    esac
done
[ ${#releases[@]} -gt 0 ] || releases=(bookworm trixie)
[ "$(id -u)" -eq 0 ] || die "this needs root, for chroot and mounts: sudo make test-fresh"
need_rust

# Mounts and processes are visible only to this process and its children, and end with it.
if [ -z "${FRESH_INSIDE:-}" ]; then
    FRESH_INSIDE=yes exec unshare --mount --pid --fork --mount-proc --kill-child "$0" "$@"
fi

mkdir -p "$FRESH"
rm -f "$FRESH/table"
if git rev-parse --git-dir >/dev/null 2>&1; then
    git archive --output "$FRESH/sources.tar" HEAD
else
    tar -cf "$FRESH/sources.tar" --exclude ./target --exclude ./.venv --exclude ./data --exclude ./dist .
fi
if have rustup && { rustup run "$(rust_needed)" rustc --version >/dev/null 2>&1 ||
    rustup --quiet toolchain install "$(rust_needed)" --profile minimal --no-self-update; }; then
    RUST=$(rustup run "$(rust_needed)" rustc --print sysroot)
else
    RUST=$(rustc --print sysroot)
fi
say "with $("$RUST/bin/rustc" --version)"
for release in "${releases[@]}"; do
    try "$release"
done
cat "$FRESH/table"
