#!/usr/bin/env bash
# Makes the release of the commit that is checked out: checks that its parts agree, builds in dist/ what is given to
# others, and sets the tags. It publishes nothing, and says at its end what is left to do. RELEASE-CHECKLIST.md says what
# must have passed before.
#
#   scripts/release.sh [--check]      --check: only looks whether it could
#
# ARCHES, LIBCS, PROFILE and SIGN_KEY are those of `make dist`. With SIGN_KEY the tags are signed, too.

set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib/common.sh

VERSION=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
DIST=${DIST:-dist}
# Go finds a module below the root of a repository by a tag that begins with its folder.
TAGS=("v$VERSION" "clients/go/v$VERSION")

# Fails if a manifest does not have this version: same_version FILE REGULAR_EXPRESSION
same_version() {
    grep -qE "^$2\$" "$1" || die "$1 has another version than Cargo.toml, which says $VERSION"
}

quoted=${VERSION//./\\.}
[ -z "$(git status --porcelain)" ] || die "there are changes that are not committed: git status lists them"
same_version cli/Cargo.toml "version = \"$quoted\""
same_version clients/python/pyproject.toml "version = \"$quoted\""
same_version clients/node/package.json "  \"version\": \"$quoted\","
for tag in "${TAGS[@]}"; do
    ! git rev-parse --quiet --verify "refs/tags/$tag" >/dev/null || die "the tag $tag is there already: raise the version"
done
grep -qE "^## $quoted - 20[0-9]{2}-[0-9]{2}-[0-9]{2}\$" CHANGELOG.md ||
    die "CHANGELOG.md has no heading \"## $VERSION - DATE\" with the date of the release"
if [ "${1:-}" = --check ]; then
    say "version $VERSION can be released"
    exit
fi

BUNDLE=yes DIST=$DIST scripts/dist.sh
images=
for engine in podman docker; do
    if [ -z "$images" ] && have "$engine"; then
        "$engine" build --file packaging/container/Containerfile --target server --tag "dq-server:$VERSION" .
        images="$engine push dq-server:$VERSION to a registry"
    fi
done
for tag in "${TAGS[@]}"; do
    if [ -n "${SIGN_KEY:-}" ]; then
        git tag --sign --local-user "$SIGN_KEY" --message "dq $VERSION" "$tag"
    else
        git tag --annotate --message "dq $VERSION" "$tag"
    fi
done

say "version $VERSION is built and tagged here, and not published. To publish it:"
cat <<TEXT
  git push origin ${TAGS[*]}         the second one is what Go asks for
  a release page with the text of packaging/release.md and all files of $DIST
  twine upload $DIST/*.whl
  npm publish FILE                   for each $DIST/dq*.tgz but those named linux-*.tar.gz, dq-server last
  Packagist                          reads clients/php from the tag; until then $DIST/dq-php-$VERSION.zip is for Composer's "artifact"
  ${images:-images: neither podman nor docker is here, so none were built}
TEXT
