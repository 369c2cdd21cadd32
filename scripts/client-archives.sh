#!/usr/bin/env bash
# Packs the clients as their package managers take them, in DIST (default: dist):
#
#   dq_queue-VERSION-py3-none-any.whl     for pip
#   dq-queue-VERSION.tgz                  for npm, if Node and npm are here
#   dq-php-VERSION.zip                    for Composer, in a repository of the type "artifact"
#
# The client for Go needs no archive: Go takes it from the repository, by the tag clients/go/vVERSION.
# The output depends only on the commit and the tools. NODE_MODULES names a folder with what package-lock.json of the client
# for Node names, so that npm need not get it: tests have one.

set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib/common.sh

scripts/setup.sh tests
DIST=$(realpath -m "${DIST:-dist}")
VERSION=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y CHANGELOG.md)}
export SOURCE_DATE_EPOCH
umask 022
mkdir -p "$DIST"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The tools write into the folder that they pack, so they get a copy. They pack the modes of its files, which depend on the
# umask of the checkout.
say "packing the clients, version $VERSION"
cp -r clients "$work/clients"
chmod -R u=rwX,go=rX "$work/clients"
find "$work" \( -name __pycache__ -o -name '*.egg-info' -o -name build -o -name node_modules -o -name dist \) -prune -exec rm -rf {} +

"$VENV/bin/pip" wheel --quiet --disable-pip-version-check --no-deps --wheel-dir "$DIST" "$work/clients/python"

if have npm; then
    (
        cd "$work/clients/node"
        if [ -n "${NODE_MODULES:-}" ]; then
            ln -s "$NODE_MODULES" node_modules
        else
            npm ci --silent --no-audit --no-fund --ignore-scripts
        fi
        npm pack --silent --pack-destination "$DIST"
    ) >/dev/null
else
    say "no npm here, so there is no archive of the client for Node"
fi

"$VENV/bin/python" - "$work/clients/php" "$DIST/dq-php-$VERSION.zip" "$VERSION" "$SOURCE_DATE_EPOCH" <<'PYTHON'
import json, sys, time, zipfile
from pathlib import Path

root, target, version, moment = Path(sys.argv[1]), sys.argv[2], sys.argv[3], time.gmtime(int(sys.argv[4]))[:6]
# Composer wants the version of an archive in it. In a checkout it takes that of the tag.
manifest = root / "composer.json"
manifest.write_text(json.dumps({"version": version, **json.loads(manifest.read_text())}, indent=4) + "\n")
files = [manifest, root / "autoload.php", root / "README.md", *sorted((root / "src").rglob("*.php"))]
with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
    for file in files:
        entry = zipfile.ZipInfo(str(file.relative_to(root)), moment)
        entry.external_attr = 0o644 << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        archive.writestr(entry, file.read_bytes())
PYTHON
