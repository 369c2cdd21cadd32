#!/usr/bin/env bash
# Checks that each layer of the module uses only the layers below it: commands -> server -> redis. The library below
# them (crates/queue) needs no check, because it has no dependency on this package.
#
# The rooms of the library and those of the program dq (cli/) are checked likewise.
#
#   scripts/layers.sh [MODULE [LIBRARY [PROGRAM]]]      default: src crates/queue/src cli/src

set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib/common.sh

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
# Fails if a room uses one of those above it: no_use ROOM UPPERS [PREFIX], the last two as regular expressions.
no_use() {
    local room=$1 uppers=$2 prefix=${3:-(crate|dq_queue)}
    [ -e "$room" ] || return 0
    if grep -rnE "\\b$prefix::(\\{[^}]*\\b)?($uppers)\\b" "$room" --include '*.rs' | grep -vE '^[^:]+:[0-9]+: *//'; then
        echo "error: $room uses a room above it (see above)" >&2
        failed=1
    fi
}

# In the server, rooms that only hold state are below the one way to change a queue, and rooms that act are above it.
for room in waiting families own_slots.rs wakeups.rs due_index.rs bound_leases.rs rights.rs standstill.rs arrivals.rs; do
    no_use "$src/server/$room" 'commit|serving|timer|replay|acksend|bulk_ops' '(crate::server|super)'
done
no_use "$src/server/commit" 'serving|timer|replay|acksend|bulk_ops' '(crate::server|super)'

# In the library, rooms do not use those above them: collections do not depend on queues, the parts of a queue do not
# use the queue, and the queue knows neither words nor bytes.
library=${2:-crates/queue/src}
no_use "$library/collections" 'args|codec|groups|index|message|op|queue|schedule'
for room in message index groups schedule; do
    no_use "$library/$room" 'args|codec|queue'
done
no_use "$library/queue" 'args|codec'

# The program: each line is a layer, and uses only those before it. The rooms of one line do not use each other.
program=${3:-cli/src}
floors=(
    'text table time_text json failure output secret data_folder'
    'server'
    'model'
    'command top web'
    'args'
)
uppers=main
for ((i = ${#floors[@]} - 1; i >= 0; i--)); do
    read -ra rooms <<<"${floors[i]}"
    for room in "${rooms[@]}"; do
        beside=
        # The small rooms at the bottom may use each other.
        [ "$i" = 0 ] || beside=$(printf '|%s' "${rooms[@]}" | sed -E "s/\\|$room\\b//")
        for file in "$program/$room" "$program/$room.rs"; do
            [ ! -e "$file" ] || no_use "$file" "$uppers$beside"
        done
    done
    uppers+=$(printf '|%s' "${rooms[@]}")
done
# Within its pages: shared code uses neither pages nor actions, actions use no page, and only serve.rs uses all.
for file in "$program"/web/*; do
    case ${file##*/} in
    mod.rs | assets) ;;
    serve.rs) ;;
    page) no_use "$file" 'api|serve' '(crate::web|super)' ;;
    api.rs) no_use "$file" 'page|serve' '(crate::web|super)' ;;
    action) no_use "$file" 'api|page|serve' '(crate::web|super)' ;;
    *) no_use "$file" 'action|api|page|serve' '(crate::web|super)' ;;
    esac
done
# A path with more than one super, or a file that is included by its path, hides which module is used.
if grep -rnE 'super::super::|#\[path' "$src" crates simulation fuzz benches cli --include '*.rs' --exclude-dir target; then
    echo "error: a file is used by its path, or a module by super::super:: (see above): name it from the crate's root" >&2
    failed=1
fi
[ "$failed" = 0 ] || exit 1
say "layers: no arrow upward"
