#!/usr/bin/env bash
# Builds the terminal program dq. With `install` it also installs the program, its manual pages and what shells complete
# below PREFIX (/usr/local), in DESTDIR if that is set. DQ_CLI names a program to install that is already built, and DQ_RUN
# one that runs on this machine, if DQ_CLI is for another processor.
#
#   scripts/cli.sh [install]

set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib/common.sh

built=
[ "${1:-}" != install ] || built=${DQ_CLI:-}
program=${built:-$TARGET/cli/release/dq}
if [ -z "$built" ]; then
    scripts/setup.sh build
    say "building $program"
    cargo_of cli build --release
fi
if [ "${1:-}" != install ]; then
    say "run it as $program, or install it: make install-cli"
    exit
fi

root=${DESTDIR:-}${PREFIX:-/usr/local}
runs=${DQ_RUN:-$program}
install -D -m 755 "$program" "$root/bin/dq"
mkdir -p "$root/share/man/man1" "$root/share/bash-completion/completions" "$root/share/zsh/site-functions" \
    "$root/share/fish/vendor_completions.d"
"$runs" man "$root/share/man/man1"
"$runs" completion bash >"$root/share/bash-completion/completions/dq"
"$runs" completion zsh >"$root/share/zsh/site-functions/_dq"
"$runs" completion fish >"$root/share/fish/vendor_completions.d/dq.fish"
say "installed $root/bin/dq"
