#!/usr/bin/env bash
# Tests that a release can be repeated: builds it twice, from two clones of this commit in folders of different names and
# depths, in different locales, time zones and umasks, the second with the counts of the first. The files must be the
# same, byte by byte.
#
# ARCHES, LIBCS, BUNDLE and PROFILE are those of scripts/dist.sh; the bundles are built, too, unless BUNDLE=no. Without
# PROFILE the first build counts. KEEP names a folder that gets the files of the first build. On two processors a build of
# everything for one processor takes half an hour to an hour.

set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/lib/common.sh

have git || die "git not found: it clones the sources"
[ -z "$(git status --porcelain)" ] || say "what is not committed is not built"
[ -z "${PROFILE:-}" ] || PROFILE=$(realpath "$PROFILE")
[ -z "${KEEP:-}" ] || KEEP=$(realpath -m "$KEEP")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
first=$scratch/one second=$scratch/two/further/down
unset CARGO_TARGET_DIR DIST DQ_MODULE DQ_CLI SOURCE_DATE_EPOCH SIGN_KEY

# The Python environment is that of this folder, because it takes long to create and does not affect the packages.
build() {
    local folder=$1
    git clone --quiet . "$folder"
    ln -s "$(realpath "$VENV")" "$folder/.venv"
    BUNDLE=${BUNDLE:-yes} "$folder/scripts/dist.sh"
}

scripts/setup.sh build server tests
say "the first build"
(umask 022 && LC_ALL=C TZ=UTC build "$first")
VERSION=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
counts=$first/dist/dq-$VERSION.profdata
say "the second build"
(
    umask 077
    [ ! -f "$counts" ] || export PROFILE=$counts
    LC_ALL=C.UTF-8 TZ=Asia/Kolkata build "$second"
)
[ -z "${KEEP:-}" ] || { mkdir -p "$KEEP" && cp "$first"/dist/* "$KEEP"; }
diff "$first/dist/SHA256SUMS" "$second/dist/SHA256SUMS" || die "the two builds differ"
cat "$first/dist/SHA256SUMS"
say "the two builds are the same"
