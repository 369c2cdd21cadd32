#!/usr/bin/env bash
# A producer and a worker with nothing but redis-cli and bash; README.md says what they show.
#
#   apt install redis-tools
#   ./redis-cli.sh send redis://127.0.0.1:6379 orders 100
#   ./redis-cli.sh work redis://127.0.0.1:6379 orders
#
# Each command is a connection of its own, so there is nothing to reconnect, but everything to repeat. The reply of FETCH
# comes as lines (id, receipt, attempt, payload), so this takes one message at a time.

set -uo pipefail

LEASE_MS=${LEASE_MS:-30000}
BLOCK_MS=2000
TIMEOUT_S=5 # longer than BLOCK_MS

stopping=
answer=$(mktemp)
trap 'rm -f "$answer"' EXIT
exec {silence}<> <(:)

# One command. Status 0: answered; otherwise the connection was lost or the server refused, and the output says why.
call() { timeout "$TIMEOUT_S" redis-cli -e "-${RESP:-3}" -u "$url" "$@" 2>&1; }

# The same, whose reply comes in $reply. It goes through a file: bash 5.2 can lose a signal that arrives while it reads
# the output of a command by $(...).
ask() {
    call "$@" >"$answer"
    local status=$?
    IFS= read -r -d '' reply <"$answer"
    while [[ $reply == *$'\n' ]]; do reply=${reply%$'\n'}; done
    return $status
}

# An error reply of the server, which repeating would not help: it begins with a word in capitals.
refused() { [[ $1 =~ ^[A-Z]+\  && $1 != LOADING* ]]; }

# Repeats a command until it is answered. All commands here may be: see README.md.
insist() {
    local pause=0.1
    until ask "$@"; do
        if refused "$reply" || [ -n "$stopping" ]; then
            return 1
        fi
        echo "trying again: $reply"
        sleep "$pause"
        pause=0.5
    done
}

die() {
    echo "$*" >&2
    exit 1
}

# ---- producer -------------------------------------------------------------------------------------------------------

send() {
    insist DQ.CREATE "$queue" DEDUP 60000 || [[ $reply == *"queue already exists"* ]] || die "$reply"
    for ((n = 0; n < $1; n++)); do
        id=close:order-$n
        insist DQ.SEND "$queue" "{\"order\": \"order-$n\", \"work_ms\": ${2:-20}}" ID "$id" || die "$reply"
        if [ -n "$reply" ]; then echo "sent $id"; else echo "already there $id"; fi
    done
}

# ---- worker ---------------------------------------------------------------------------------------------------------

# Keeps the lease of a receipt, until it is killed. It waits by a read that nothing answers: the sleep command would
# outlive it.
beat() {
    local span
    span=$((LEASE_MS / 3000)).$(printf %03d $((LEASE_MS / 3 % 1000)))
    while ! read -rt "$span" -u "$silence"; do
        call DQ.TOUCH "$queue" "$LEASE_MS" "$1" >/dev/null
    done
}

# The work, in steps between which it can be stopped.
# Status 0: closed; 1: somebody with a newer receipt did it before; 2: failed; 3: to be given back.
close_order() {
    local receipt=$1 payload=$2 order ms
    [[ $payload != *'"broken": true'* ]] || return 2
    [[ $payload =~ \"order\":\ *\"([^\"]*)\" ]] && order=${BASH_REMATCH[1]} || return 2
    [[ $payload =~ \"work_ms\":\ *([0-9]+) ]] && ms=${BASH_REMATCH[1]} || return 2
    local left=$ms pause
    while ((left > 0)); do
        [ -z "$stopping" ] || return 3
        printf -v pause 0.%03d $((left < 100 ? left : 100))
        sleep "$pause"
        ((left -= 100))
    done
    ask ZADD "$queue:closed" GT CH "$receipt" "$order" || return 2
    [ "$reply" = 1 ] || return 1
}

work() {
    local consumer id receipt attempt payload ack=()
    consumer=$(hostname):$$
    trap 'stopping=yes' TERM INT
    while [ -z "$stopping" ]; do
        insist DQ.FETCH "$queue" BLOCK "$BLOCK_MS" LEASE "$LEASE_MS" CONSUMER "$consumer" ${ack[@]+"${ack[@]}"} || {
            ! refused "$reply" || die "$reply"
            break
        }
        ack=()
        [ -n "$reply" ] || continue
        { read -r id && read -r receipt && read -r attempt && IFS= read -r -d '' payload; } <<<"$reply"
        beat "$receipt" &
        local heart=$!
        close_order "$receipt" "$payload"
        case $? in
        0) ack=(ACK 1 "$receipt") && echo "done $id attempt $attempt" ;;
        1) ack=(ACK 1 "$receipt") && echo "fenced $id attempt $attempt" ;;
        2) insist DQ.NACK "$queue" "$receipt" ERROR "this order cannot be closed" && echo "failed $id attempt $attempt" ;;
        3) call DQ.NACK "$queue" "$receipt" SILENT >/dev/null && echo "gave back $id" ;;
        esac
        kill "$heart" && wait "$heart" 2>/dev/null
    done
    [ ${#ack[@]} -eq 0 ] || call DQ.ACK "$queue" "$receipt" >/dev/null
}

[ $# -ge 3 ] || die "usage: $0 send URL QUEUE COUNT [WORK-MS] | $0 work URL QUEUE"
role=$1 url=$2 queue=$3
case $role in
send) send "${4:-100}" "${5:-20}" ;;
work) work ;;
*) die "unknown role: $role" ;;
esac
