#!/usr/bin/env bash
# Counts the instructions of SEND, FETCH and ACK in the core, with few and with many groups and a million messages in
# the queue. Needs valgrind. Takes two minutes.
#
#   scripts/instructions.sh [GROUPS...]     default: 1 1000 100000 1000000

set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib/common.sh

have valgrind || die "counting instructions needs valgrind: apt-get install valgrind"
need_rust
cargo build --package dq-core-bench --release --quiet --example instructions "${CARGO_FLAGS_LIST[@]}"
program=$TARGET/release/examples/instructions
[ -x "$program" ] || die "the program was not built where it was looked for: $program"

out=$(mktemp)
trap 'rm -f "$out"' EXIT
COUNTED=20000
[ $# -gt 0 ] || set -- 1 1000 100000 1000000
printf '%10s %10s %10s %10s\n' groups SEND FETCH ACK
for groups in "$@"; do
    valgrind --tool=callgrind --callgrind-out-file="$out" --collect-atstart=no \
        --toggle-collect='*counted_sends*' --toggle-collect='*counted_fetch*' --toggle-collect='*counted_ack*' \
        "$program" "$groups" 2>/dev/null
    callgrind_annotate --inclusive=yes --threshold=100 "$out" |
        awk -v groups="$groups" -v n=$COUNTED '
            { gsub(",", "", $1) }
            /counted_sends/ && !send { send = $1 }
            /counted_fetch/ && !fetch { fetch = $1 }
            /counted_ack/ && !ack { ack = $1 }
            END { printf "%10d %10d %10d %10d\n", groups, send / n, fetch / n, ack / n }'
done
