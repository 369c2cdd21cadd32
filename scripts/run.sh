#!/usr/bin/env bash
# Builds the module and starts redis-server with it in the foreground.
#
#   PORT (6379)            its port
#   DATA (data/PORT)       the directory of its files, which only one server can use at a time
#   REDIS_SERVER           the server to start
#   DQ_MODULE              a module that is already built

set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib/common.sh

PORT=${PORT:-6379}
DATA=$(absolute "${DATA:-data/$PORT}")

# Check the variables before anything is installed or built.
if ! [[ $PORT =~ ^[0-9]{1,5}$ ]]; then
    die "PORT is a number such as 7000, not '$PORT'"
fi
if (exec 3<>"/dev/tcp/127.0.0.1/$PORT") 2>/dev/null; then
    other=7000
    [ "$PORT" != 7000 ] || other=7001
    die "something listens on port $PORT already; take another: make run PORT=$other"
fi
[ -n "${DQ_MODULE:-}" ] || need_rust
need_server_version

if [ ! -e "$DATA" ] && { [ -e data/appendonlydir ] || [ -e data/dump.rdb ]; }; then
    die "./data has the files of an earlier version, which kept them there for all ports; move them to where they belong: mkdir ${DATA#"$PWD/"} && mv data/appendonlydir data/dump.rdb ${DATA#"$PWD/"}"
fi

# The server and the processes that it forks to save inherit the lock. It is released when the last of them has ended.
mkdir -p "$DATA"
exec 9>>"$DATA/lock"
lock_file 9 || die "${DATA#"$PWD/"} is in use by another server (process $(tail -n 1 "$DATA/lock")): give this one a directory of its own with DATA=..., or stop the other"
echo $$ >"$DATA/lock"

if [ -z "${DQ_MODULE:-}" ]; then
    scripts/setup.sh build server 9>&-
    scripts/build.sh 9>&-
else
    scripts/setup.sh server 9>&-
    MODULE=$(absolute "$DQ_MODULE")
    [ -f "$MODULE" ] || die "no module at $MODULE"
fi

# Copy redis.conf with the directory of this server and the path of the module.
{
    echo "# Written by scripts/run.sh at each start: what you change here is gone then. Change redis.conf of the sources."
    while IFS= read -r line; do
        case $line in
        "dir "*) echo "dir \"$DATA\"" ;;
        "loadmodule "*) echo "loadmodule \"$MODULE\"" ;;
        *) echo "$line" ;;
        esac
    done <redis.conf
} >"$DATA/redis.conf"

cli=redis-cli
[ "$PORT" = 6379 ] || cli="redis-cli -p $PORT"
cat <<TEXT

The server starts on port $PORT; its data is in ${DATA#"$PWD/"}; Ctrl-C stops it.
Send a first message from another terminal:

  $cli DQ.SEND hello "it works"                    # a message, due now
  $cli DQ.FETCH hello                              # its id, receipt, attempt and payload
  $cli DQ.ACK hello RECEIPT                        # done: the integer that FETCH showed
  $cli DQ.SEND hello "five seconds later" DELAY 5000
  $cli DQ.FETCH hello BLOCK 0                      # returns in the very millisecond

TEXT

exec "$REDIS_SERVER" "$DATA/redis.conf" --port "$PORT"
