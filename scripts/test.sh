#!/usr/bin/env bash
# Runs all tests: the Rust tests of the module and of the other programs, then the server tests with pytest and a real
# redis-server. It runs all of them even if some fail, and prints the summaries at the end. Five files of server tests
# run at a time, because most of them wait. Those that take the longest come first.
# PYTEST_FLAGS are flags for pytest (-n 0: one at a time), CARGO_FLAGS for cargo. REDIS_SERVER names the server.

set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib/common.sh

scripts/setup.sh build server tests
scripts/build.sh --checked

logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
failed=0

say "Rust tests"
if cargo nextest --version >/dev/null 2>&1; then
    cargo nextest run --cargo-profile checked --no-tests pass "${CARGO_FLAGS_LIST[@]}" 2>&1 | tee "$logs/rust" || failed=1
else
    cargo test --profile checked "${CARGO_FLAGS_LIST[@]}" 2>&1 | tee "$logs/rust" || failed=1
fi
for program in "${PROGRAMS[@]}"; do
    say "Rust tests of $program"
    cargo_of "$program" test 2>&1 | tee -a "$logs/rust" || failed=1
done

say "simulation"
cargo test --package dq-simulation --profile checked "${CARGO_FLAGS_LIST[@]}" 2>&1 | tee -a "$logs/rust" || failed=1
SEED=1 STEPS=200000 scripts/simulate.sh | tee "$logs/simulation" || failed=1

say "exploring"
scripts/explore.sh --threads 2 | tee "$logs/exploring" || failed=1
EXPLORE_BUGS=yes scripts/explore.sh | tee "$logs/bugs" || failed=1

say "fuzzing, for seconds"
FUZZ_SECONDS=${FUZZ_SECONDS:-4} scripts/fuzz.sh --stable | tee "$logs/fuzzing" || failed=1

say "server tests"
# Use the terminal program that the Rust tests have built, so that it need not be compiled again.
cargo_of cli build
read -ra pytest_flags <<<"-q ${PYTEST_FLAGS:-}"
# Workers of every driver under every fault take a quarter of an hour: `make test-faults`. The tests of one driver stand
# for all here. `make test-short` has the tests of the programs that measure and torture.
faults=()
for file in tests/drivers/faults/test_*.py clients/python/tests/faults/test_*.py; do
    case $file in
    */test_faults_threads.py) ;;
    *) faults+=("--ignore=$file") ;;
    esac
done
# These wait for old workers, or until they have been away for long enough: `make test-takeover`.
faults+=(--ignore=tests/takeover/test_page.py)
for test in bullmq.py::test_a_job_whose_worker_was_killed_is_named_and_taken {celery,dramatiq}.py::test_what_a_killed_worker_had_is_lost_and_taken; do
    faults+=("--deselect=tests/takeover/test_$test")
done
DQ_MODULE=$CHECKED_MODULE REDIS_SERVER=$REDIS_SERVER DQ_CLI=$TARGET/cli/debug/dq \
    "$VENV/bin/python" -m pytest -n 5 --dist loadfile --no-loadscope-reorder "${pytest_flags[@]}" \
    clients/python/tests/faults tests/tools tests clients/python/tests --ignore=tests/short "${faults[@]}" 2>&1 | tee "$logs/pytest" || failed=1

say "summary"
grep -E '^ *Summary \[|^test result:' "$logs/rust" || echo "Rust tests: no summary, see above"
tail -n 1 "$logs/simulation"
tail -n 1 "$logs/exploring"
tail -n 1 "$logs/fuzzing"
tail -n 1 "$logs/pytest"
exit "$failed"
