#!/usr/bin/env bash
# Checks that each layer of the module uses only the layers below it: commands -> server -> redis. The library below
# them (crates/queue) needs no check, because it has no dependency on this package.
#
#   scripts/layers.sh [MODULE [LIBRARY]]      default: src crates/queue/src

set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

src=${1:-src}
failed=0

# Prints the layers above a layer, as a regular expression: above LAYER
above() {
    case $1 in
    redis) echo 'server|commands' ;;
    server) echo 'commands' ;;
    esac
}

for layer in redis server; do
    # Comments may refer to layers above.
    if grep -rnE "\bcrate::($(above $layer))\b" "$src/$layer" --include '*.rs' | grep -vE '^[^:]+:[0-9]+: *//'; then
        echo "error: $src/$layer uses a layer above it (see above); hand in what it needs, as redis::Module does" >&2
        failed=1
    fi
done
# In the library, what is used by more rooms does not use those above it: collections know nothing of queues, what a queue
# consists of does not use the queue, and the queue knows neither words nor bytes.
library=${2:-crates/queue/src}
no_use() {
    local room=$1 uppers=$2
    if grep -rnE "\\b(crate|dq_queue)::($uppers)\\b" "$library/$room" --include '*.rs' | grep -vE '^[^:]+:[0-9]+: *//'; then
        echo "error: $library/$room uses a room above it (see above)" >&2
        failed=1
    fi
}
no_use collections 'args|codec|groups|index|message|op|queue|schedule'
for room in message index groups schedule; do
    no_use "$room" 'args|codec|queue'
done
no_use queue 'args|codec'
# A path with more than one super, or a file that is included by its path, hides which module is used.
if grep -rnE 'super::super::|#\[path' "$src" crates simulation fuzz benches cli --include '*.rs' --exclude-dir target; then
    echo "error: a file is used by its path, or a module by super::super:: (see above): name it from the crate's root" >&2
    failed=1
fi
[ "$failed" = 0 ] || exit 1
say "layers: no arrow upward"
