#!/usr/bin/env bash
# Measures BullMQ on dq beside BullMQ on its Redis backend, in one run: the same server program, the same Node, in turn.
# Servers and worker run together on one processor, as in a small container, and then apart, wherever the system puts them.
# Apart, each job at concurrency 1 may wake processors that sleep, which costs more than the job on many virtual machines.
#
#   clients/node/bench/run.sh [jobs] [rounds] [kills]      by default 40000, 3 and 300
#
# DQ_MODULE: the module.

set -euo pipefail
cd "$(dirname "$0")/../../.."

readonly TARGET=${CARGO_TARGET_DIR:-$PWD/target} JOBS=${1:-40000} ROUNDS=${2:-3} KILLS=${3:-300}
readonly PLACE=$TARGET/node-client DQ_PORT=${BENCH_PORT:-7991}
readonly REDIS_PORT=$((DQ_PORT + 1))

[ -f "$PLACE/package-lock.json" ] || { echo "make setup-optional first: $PLACE is not there"; exit 1; }
rm -rf "$PLACE/src" "$PLACE/bench"
cp -r clients/node/src clients/node/bench clients/node/package.json clients/node/tsconfig.json "$PLACE"
(cd "$PLACE" && npm run --silent build)

server=$(mktemp -d)
redis-server --port "$DQ_PORT" --save '' --dir "$server" --loadmodule "${DQ_MODULE:-$TARGET/release/libdq.so}" --daemonize yes --pidfile "$server/dq" >/dev/null
redis-server --port "$REDIS_PORT" --save '' --dir "$server" --daemonize yes --pidfile "$server/redis" >/dev/null
trap 'kill "$(cat "$server/dq")" "$(cat "$server/redis")"; sleep 1; rm -rf "$server"' EXIT

cd "$PLACE"
apart=$(taskset -cp $$ | sed 's/.*: //')
together=${apart%%[-,]*}
for _ in $(seq "$ROUNDS"); do
    for placement in together apart; do
        for pid in dq redis; do taskset -apc "${!placement}" "$(cat "$server/$pid")" >/dev/null; done
        measured=(taskset -c "${!placement}" node bench/measure.mjs)
        "${measured[@]}" dq "redis://127.0.0.1:$DQ_PORT" "$JOBS" "$placement" >>"$server/results"
        "${measured[@]}" redis "redis://127.0.0.1:$REDIS_PORT" "$JOBS" "$placement" >>"$server/results"
    done
done
node bench/kills.mjs "redis://127.0.0.1:$DQ_PORT" "$KILLS" >"$server/kills"
node bench/table.mjs "$server/results" "$server/kills"
