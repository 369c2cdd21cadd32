#!/usr/bin/env bash
# Runs tests.effects.faults on each of these engines of scripts/engines.sh; default: the installed server.

set -euo pipefail
cd "$(dirname "$0")/.."

[ $# -gt 0 ] || set -- installed
failed=0
for engine in "$@"; do
    path=$(scripts/engines.sh path "$engine")
    read -ra flags <<<"${EFFECTS_FLAGS:-}"
    BUILD=--checked REDIS_SERVER=$path scripts/python.sh tests.effects.faults ${flags[@]+"${flags[@]}"} || failed=1
done
exit "$failed"
