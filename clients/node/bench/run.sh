#!/usr/bin/env bash
# Measures BullMQ on dq beside BullMQ on its Redis backend, in one run: the same server program, the same Node, in turn.
#
#   clients/node/bench/run.sh [jobs] [rounds] [kills]      by default 20000, 3 and 300
#
# DQ_MODULE: the module.

set -euo pipefail
cd "$(dirname "$0")/../../.."

readonly TARGET=${CARGO_TARGET_DIR:-$PWD/target} JOBS=${1:-20000} ROUNDS=${2:-3} KILLS=${3:-300}
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
for _ in $(seq "$ROUNDS"); do
    node bench/measure.mjs dq "redis://127.0.0.1:$DQ_PORT" "$JOBS" >>"$server/results"
    node bench/measure.mjs redis "redis://127.0.0.1:$REDIS_PORT" "$JOBS" >>"$server/results"
done
node bench/kills.mjs "redis://127.0.0.1:$DQ_PORT" "$KILLS" >"$server/kills"
node bench/table.mjs "$server/results" "$server/kills"
