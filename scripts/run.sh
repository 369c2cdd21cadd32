#!/usr/bin/env bash
# Builds the module and starts redis-server with it in the foreground, data in ./data.
# PORT (6379) and REDIS_SERVER (redis-server) may be set.

set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

PORT=${PORT:-6379}

scripts/setup.sh build server
# redis.conf names the module in ./target, so that is where it is built, whatever CARGO_TARGET_DIR says.
CARGO_TARGET_DIR=target scripts/build.sh

if (exec 3<>"/dev/tcp/127.0.0.1/$PORT") 2>/dev/null; then
    die "something listens on port $PORT already; take another: make run PORT=7000"
fi

cli=redis-cli
[ "$PORT" = 6379 ] || cli="redis-cli -p $PORT"
cat <<TEXT

The server starts on port $PORT; its data is in ./data; Ctrl-C stops it.
Send a first message from another terminal:

  $cli DQ.SEND hello "it works"                    # a message, due now
  $cli DQ.FETCH hello                              # its id, receipt, attempt and payload
  $cli DQ.ACK hello RECEIPT                        # done: the integer that FETCH showed
  $cli DQ.SEND hello "five seconds later" DELAY 5000
  $cli DQ.FETCH hello BLOCK 0                      # returns in the very millisecond

TEXT

mkdir -p data
exec "$REDIS_SERVER" redis.conf --port "$PORT"
