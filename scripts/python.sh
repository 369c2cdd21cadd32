#!/usr/bin/env bash
# Builds the module and runs a Python program of this repository with it: scripts/python.sh tests.checker --seconds 60
# REDIS_SERVER names the server. With BUILD=--checked the module is the one that tests run, which is built sooner.

set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib/common.sh

scripts/setup.sh build server tests
scripts/build.sh ${BUILD:+"$BUILD"}
[ -z "${BUILD:-}" ] || MODULE=$CHECKED_MODULE
DQ_MODULE=$MODULE REDIS_SERVER=$REDIS_SERVER exec "$VENV/bin/python" -m "$@"
