#!/usr/bin/env bash
# Builds the module as others should get it and the workers, and runs the benchmark. Arguments go to run.py. With --smoke
# the module that is there is taken.

set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/lib/common.sh

scripts/setup.sh build server tests optional
case " $* " in
*" --smoke "*) scripts/build.sh ;;
*) build_for_others ;;
esac
benches/workers/install.sh
exec "$VENV/bin/python" benches/workers/run.py --module "${DQ_MODULE:-$MODULE}" --redis-server "$REDIS_SERVER" "$@"
