#!/usr/bin/env bash
# Runs every test: the Rust ones of the module and of the programs beside it, then pytest against a real redis-server
# with the built module. All always run; the last lines are the runners' own summaries.
# Four files of server tests run at a time, since most of them wait (two cores: 4 minutes, with two at a time 5). PYTEST_FLAGS go to pytest (-n 0: one at a time),
# CARGO_FLAGS to cargo, REDIS_SERVER names the server to test against.

set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

scripts/setup.sh build server tests
scripts/build.sh

logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
failed=0

say "Rust tests"
if cargo nextest --version >/dev/null 2>&1; then
    cargo nextest run --no-tests pass "${CARGO_FLAGS_LIST[@]}" 2>&1 | tee "$logs/rust" || failed=1
else
    cargo test "${CARGO_FLAGS_LIST[@]}" 2>&1 | tee "$logs/rust" || failed=1
fi
for program in "${PROGRAMS[@]}"; do
    say "Rust tests of $program"
    cargo_of "$program" test 2>&1 | tee -a "$logs/rust" || failed=1
done

say "simulation"
SEED=1 STEPS=200000 scripts/simulate.sh | tee "$logs/simulation" || failed=1

say "fuzzing, for seconds"
FUZZ_SECONDS=${FUZZ_SECONDS:-4} scripts/fuzz.sh --stable | tee "$logs/fuzzing" || failed=1

say "server tests"
# The program as its Rust tests have it: what they were built from is there already.
cargo_of cli build
read -ra pytest_flags <<<"-q ${PYTEST_FLAGS:-}"
DQ_MODULE=$MODULE REDIS_SERVER=$REDIS_SERVER DQ_CLI=$TARGET/cli/debug/dq \
    "$VENV/bin/python" -m pytest -n 4 --dist loadfile "${pytest_flags[@]}" tests clients/python/tests 2>&1 | tee "$logs/pytest" || failed=1

say "summary"
grep -E '^ *Summary \[|^test result:' "$logs/rust" || echo "Rust tests: no summary, see above"
tail -n 1 "$logs/simulation"
tail -n 1 "$logs/fuzzing"
tail -n 1 "$logs/pytest"
exit "$failed"
