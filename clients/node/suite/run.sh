#!/usr/bin/env bash
# Runs BullMQ's own tests, as its authors run them on PostgreSQL, with dq as the backend. They are fetched from the public
# source and kept under target/ only.
#
#   clients/node/suite/run.sh [version ...]
#
# BULLMQ_SOURCE: a repository to fetch from, in place of GitHub. BULLMQ_FILES: names of test files. DQ_MODULE: the module.
# DQ_NODE_CLIENT: a built package, in place of one built here.
# Every case that fails must be named, with the reason, in docs/drivers/bullmq.md.

set -euo pipefail
cd "$(dirname "$0")/../../.."

readonly ROOT=$PWD SUITE=$PWD/clients/node/suite TARGET=${CARGO_TARGET_DIR:-$PWD/target}
readonly SOURCE=${BULLMQ_SOURCE:-https://github.com/taskforcesh/bullmq} PORT=6379
# Timers are replaced in these files, so the queues follow the time of the process.
readonly TIMED=(job_scheduler job_scheduler_stress metrics)
versions=("$@")
[ ${#versions[@]} -gt 0 ] || versions=(6.1.2 6.2.0)

say() { printf '%s\n' "==> $*"; }

[ -f "$TARGET/node-client/package-lock.json" ] || { say "make setup-optional first: $TARGET/node-client is not there"; exit 1; }

# The client, built where its packages are.
client() {
    local place=$TARGET/node-client
    rm -rf "$place/src" && cp -r clients/node/src clients/node/package.json clients/node/tsconfig.json "$place"
    (cd "$place" && npm run --silent build)
}

# Runs a command for at most so many seconds, then kills what it has left: a sandboxed processor that has lost its parent
# does not end by itself. timeout makes a process group of the command and all that it starts.
alone() {
    timeout "$@" &
    local group=$!
    wait "$group" || true
    kill -KILL -- "-$group" 2>/dev/null || true
}

# The sources of a version, and the development packages that its tests need.
fetch() {
    local version=$1 place=$2
    [ ! -f "$place/ready" ] || return 0
    say "fetching BullMQ $version"
    rm -rf "$place" && mkdir -p "$place"
    (
        cd "$place"
        git init -q .
        git fetch -q --depth 1 "$SOURCE" "refs/tags/v$version"
        git checkout -q FETCH_HEAD -- src tests scripts package.json tsconfig.json tsconfig-cjs.json
        node "$SUITE/needed.mjs"
        npm install --silent --ignore-scripts --no-audit --no-fund
        npx ts-node --project tsconfig-cjs.json scripts/generateRawScripts.ts >/dev/null
        node scripts/commandTransform.js ./rawScripts ./src/scripts >/dev/null
        # Sandboxed processors run the built package.
        ln -s node_modules/bullmq-released/dist dist
        touch ready
    )
}

[ -n "${DQ_NODE_CLIENT:-}" ] || client
# The tests of sandboxed processors connect to this port, in any case.
! (exec 3<>"/dev/tcp/127.0.0.1/$PORT") 2>/dev/null || { say "port $PORT is in use"; exit 1; }
server=$(mktemp -d)
redis-server --port "$PORT" --save '' --dir "$server" --loadmodule "${DQ_MODULE:-$TARGET/release/libdq.so}" --daemonize yes --pidfile "$server/pid" --logfile "$server/log" >/dev/null
trap 'kill "$(cat "$server/pid")"; sleep 1; rm -rf "$server"' EXIT

export DQ_TEST_URL=redis://127.0.0.1:$PORT REDIS_HOST=127.0.0.1 DQ_NODE_CLIENT=${DQ_NODE_CLIENT:-$TARGET/node-client}
status=0
for version in "${versions[@]}"; do
    place=$TARGET/bullmq-suite/$version
    fetch "$version" "$place"
    cp "$SUITE/setup.ts" "$place/dq.setup.ts"
    cp "$SUITE/config.ts" "$place/dq.config.ts"
    rm -rf "$place/out" && mkdir -p "$place/out"
    say "BullMQ $version"
    for path in "$place"/tests/*.test.ts; do
        file=$(basename "$path" .test.ts)
        node "$SUITE/count.mjs" takes "$file" || continue
        [ -z "${BULLMQ_FILES:-}" ] || [[ " $BULLMQ_FILES " == *" $file "* ]] || continue
        clock=server
        [[ " ${TIMED[*]} " != *" $file "* ]] || clock=process
        (
            cd "$place"
            DQ_SUITE_CLOCK=$clock DQ_SUITE_REPORT=out/$file.json alone 900 npx vitest run --config dq.config.ts "tests/$file.test.ts" >"out/$file.log" 2>&1
            # A case may fail because the machine is busy. It has one more chance, alone.
            alone 3600 node "$SUITE/count.mjs" again "$file" "$clock"
        )
    done
    (cd "$place" && node "$SUITE/count.mjs" sum "$ROOT/docs/drivers/bullmq.md" "$version") || status=1
done
exit $status
