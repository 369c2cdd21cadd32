#!/usr/bin/env bash
# Builds the module as others should get it, and runs the benchmark. Arguments go to it. With --smoke the module that is
# there is taken.

set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/lib/common.sh

scripts/setup.sh build server tests optional
BUILT="\`make build\`"
case " $* " in
*" --smoke "*) scripts/build.sh ;;
*) build_for_others ;;
esac
export DQ_MODULE="${DQ_MODULE:-$MODULE}" REDIS_SERVER
exec "$VENV/bin/python" -m benches.frameworks --built "$BUILT" "$@"
