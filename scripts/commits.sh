#!/usr/bin/env bash
# Checks the subjects of the commits that are new: "area: what it does", at most 72 characters, with one of the areas that
# CONTRIBUTING.md lists. New are those that origin/main has not, or where there is none, the last 20. Where there is no
# repository, as in an archive of the sources, nothing is checked.
#
#   scripts/commits.sh [RANGE OF COMMITS]

set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib/common.sh

if ! have git || ! git rev-parse --quiet --verify HEAD >/dev/null 2>&1; then
    say "commits: this is no repository, so their subjects are not checked"
    exit
fi
range=(HEAD --max-count=20)
! git rev-parse --quiet --verify origin/main >/dev/null || range=(origin/main..HEAD)
[ $# -eq 0 ] || range=("$@")
# The line behind its introduction: names in backticks.
areas=$(sed -n '/^The areas are:/,/^$/p' CONTRIBUTING.md | grep -oE '`[a-z]+`' | tr -d '`' | paste -sd '|')
[ -n "$areas" ] || die "CONTRIBUTING.md lists no areas of commits"
# Merges and commits with subjects of git, such as reverts, have no area.
wrong=$(git log --no-merges --format=%s "${range[@]}" |
    awk -v begin="^($areas)(/[a-z]+)?: [^ ]" '!/^Revert "/ && ($0 !~ begin || length($0) > 72)')
[ -z "$wrong" ] || die "the subject of a commit must be \"area: what it does\" with an area that CONTRIBUTING.md lists, and at most 72 characters long, not:
$wrong"
say "commits: every subject has its area"
