#!/usr/bin/env bash
# Checks that the layers of the module use only those below them: commands -> server -> redis. Cargo checks the library
# below them all (crates/queue): it has no dependency on this package.
#
#   scripts/layers.sh [DIRECTORY]      default: src

set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

src=${1:-src}
failed=0

# The layers above this one: above LAYER
above() {
    case $1 in
    redis) echo 'server|commands' ;;
    server) echo 'commands' ;;
    esac
}

for layer in redis server; do
    # Comments may link upward.
    if grep -rnE "\bcrate::($(above $layer))\b" "$src/$layer" --include '*.rs' | grep -vE '^[^:]+:[0-9]+: *//'; then
        echo "error: $src/$layer uses a layer above it (see above); hand in what it needs, as redis::Module does" >&2
        failed=1
    fi
done
# Only the module's root has names beside the three layers: a path with more than one super hides what is used.
if grep -rnE 'super::super::|#\[path' "$src" crates simulation fuzz benches cli --include '*.rs' --exclude-dir target; then
    echo "error: a file is used by its path, or a module by super::super:: (see above): name it from the crate's root" >&2
    failed=1
fi
[ "$failed" = 0 ] || exit 1
say "layers: no arrow upward"
