#!/usr/bin/env bash
# Runs what takes too long for a change, one part after another, and goes on where one fails. It prints a row of the
# table in docs/reliability.md for each part, and keeps the output of each in target/nightly.
#
#   scripts/nightly.sh [PART...]     a part is a target of the Makefile; default: all parts below
#
# A part may take as long as its own settings say: EXPLORE_SECONDS (a list), SIM_SECONDS, FUZZ_SECONDS, TORTURE_FLAGS.

set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib/common.sh

# Those without which a night shows nothing come first.
PARTS=(test-asan miri test-engines explore torture soak-digests hostile test-protocol fuzz simulate load rust-version audit build-pgo)

[ $# -gt 0 ] || set -- "${PARTS[@]}"
logs=$TARGET/nightly
mkdir -p "$logs"
export EXPLORE_SECONDS=${EXPLORE_SECONDS:-600} SIM_SECONDS=${SIM_SECONDS:-1800}
rows=() failed=0
for part in "$@"; do
    say "$part: $logs/$part.log"
    began=$SECONDS result=passed
    make "$part" >"$logs/$part.log" 2>&1 || result=FAILED failed=1
    [ "$result" = passed ] || tail -n 60 "$logs/$part.log"
    # The last line that is not make's own is the summary of the tool.
    summary=$(grep -v '^make' "$logs/$part.log" | tail -n 1 | tr '|' '/')
    rows+=("| $(date +%F) | $(git rev-parse --short HEAD 2>/dev/null || echo -) | $part | $(((SECONDS - began + 59) / 60)) | $result: $summary |")
done
printf '%s\n' '| date | revision | part | minutes | result |' '|---|---|---|---|---|' "${rows[@]}"
exit "$failed"
