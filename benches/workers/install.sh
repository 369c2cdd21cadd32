#!/usr/bin/env bash
# Installs the peers of `make bench-workers` into target/workers, with the ordinary clients of PyPI, npm and Debian, and
# builds the workers. What is not to be had is left out, and a line says so.

set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/lib/common.sh

place=$TARGET/workers
here=benches/workers
mkdir -p "$place/node"

python_packages() {
    local list=$1 venv=$2
    cmp -s "$list" "$venv/requirements.txt" && return
    say "installing $list into $venv"
    "$PYTHON" -m venv --clear "$venv"
    if "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --requirement "$list"; then
        cp "$list" "$venv/requirements.txt"
    else
        say "they are not to be had: these workers will be left out"
        rm -rf "$venv"
    fi
}

python_packages $here/python/requirements.txt "$place/py"
python_packages $here/python/requirements-arq.txt "$place/py-arq"

# The client for Node is built where its tests build it.
node_packages() {
    local client=$TARGET/node-client
    [ -f "$client/package-lock.json" ] || return 1
    cp -r clients/node/{src,package.json,tsconfig.json} "$client"
    (cd "$client" && npm run --silent build) || return 1
    if ! cmp -s $here/node/package-lock.json "$place/node/installed.json"; then
        say "installing what $here/node/package-lock.json names into $place/node"
        cp $here/node/package.json $here/node/package-lock.json "$place/node"
        (cd "$place/node" && npm ci --silent --no-audit --no-fund --ignore-scripts) || return 1
        cp $here/node/package-lock.json "$place/node/installed.json"
    fi
    ln -sfn "$client" "$place/node/node_modules/dq-queue"
}

node_packages || {
    say "the packages for Node are not to be had: its workers will be left out"
    rm -rf "$place/node"
}

go_workers() {
    cd $here/go
    GO111MODULE=on GOWORK=off GOPROXY=off GOFLAGS=-mod=mod GOCACHE=$TARGET/go-build go build -o "$place/go/workers" .
}

(have go && go_workers) || say "Go with Debian's redigo is not here: its workers will be left out"
