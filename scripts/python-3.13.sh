#!/usr/bin/env bash
# Prints the path of a Python 3.13. Where none is installed, it is Debian 13's with all libraries that it needs, in a cache
# outside the repository. Nothing is installed. DQ_PYTHON names the cache.

set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib/common.sh
. scripts/lib/apt.sh

# It is also run, because that of pyenv ends with an error where another version is chosen.
if python3.13 --version >/dev/null 2>&1; then
    command -v python3.13
    exit
fi

CACHE=$(absolute "${DQ_PYTHON:-${XDG_CACHE_HOME:-$HOME/.cache}/dq-python}")
usr=$CACHE/root/usr
python=$usr/bin/python3.13
mkdir -p "$CACHE"
exec 9>"$CACHE/lock"
have flock && flock 9
if [ ! -f "$CACHE/ready" ]; then
    say "getting Python 3.13 from Debian 13"
    use_own_apt "$CACHE/apt" PACKAGES:trixie
    # apt is told that nothing is installed, so that the libraries come as well.
    apt-get -qq -y --no-install-recommends --download-only -o Dir::State::status=/dev/null -o Debug::NoLocking=true \
        install python3.13-venv >/dev/null
    rm -rf "$CACHE/root"
    for deb in "$CACHE"/apt/cache/archives/*.deb; do dpkg -x "$deb" "$CACHE/root"; done
    # The pip of new environments would be that of this machine.
    sed -i "s#'/usr/share/python-wheels#'$usr/share/python-wheels#" "$usr"/lib/python3.13/_sysconfigdata*.py
    mv "$python" "$python.real"
    # Its C library is newer than that of this machine, and comes with a loader of its own.
    loader=$(find "$usr"/lib/*/ -maxdepth 1 -name 'ld-linux*' | head -n 1)
    cat >"$python" <<EOF
#!/bin/sh
exec "$loader" --argv0 "\$0" --library-path "$(dirname "$loader")" "$python.real" "\$@"
EOF
    chmod +x "$python"
    touch "$CACHE/ready"
fi
echo "$python"
