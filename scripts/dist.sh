#!/usr/bin/env bash
# Builds the packages of a release, which need no compiler. For each processor of ARCHES (amd64, arm64; default: this
# machine's) it makes in dist/
#
#   dq-VERSION-linux-ARCH.tar.gz          for every Linux
#   redis-dq_VERSION_ARCH.deb             for Debian
#   dq-VERSION-linux-ARCH-debug.tar.gz    the debug symbols of both
#
# and once dq-VERSION.profdata, the counts that the optimisation went by, dq-VERSION.buildinfo, the tools that were used,
# SHA256SUMS, and with SIGN_KEY, which names a key of gpg (its fingerprint, as `gpg --list-secret-keys` prints it), the
# signature SHA256SUMS.asc and the public key dq-release-key.asc.
#
# The output depends only on the commit, the tools and the counts, not on the folder or the time. PROFILE names the
# counts of an earlier build, to repeat it. scripts/install-tests/reproducible.sh tries that.
#
# With BUNDLE=yes scripts/bundle.sh adds the bundles of `dq server`, for ARCHES and for each libc of LIBCS, and
# scripts/client-archives.sh the clients.
#
# DQ_MODULE and DQ_CLI name a module and a terminal program that are already built. DIST names the output directory
# (default: dist). With COMPRESSION=1 gzip and xz pack soon and not well, for tests of the rest.

set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib/common.sh
. scripts/lib/reproducible.sh

have dpkg-deb || die "dpkg-deb not found: the packages are built on Debian or a relative of it"
have objcopy || die "objcopy not found: it takes the debug symbols out of what is packed; apt-get install binutils"
read -ra ARCHES <<<"${ARCHES:-$(this_arch)}"
for arch in "${ARCHES[@]}"; do rust_target "$arch" >/dev/null; done
if [ -n "${SIGN_KEY:-}" ]; then
    # Before the long build.
    have gpg || die "gpg not found: it signs SHA256SUMS; apt-get install gnupg"
    gpg --batch --quiet --list-secret-keys "$SIGN_KEY" >/dev/null 2>&1 ||
        die "gpg has no secret key $SIGN_KEY, which SIGN_KEY names: gpg --list-secret-keys prints what it has"
fi

DIST=${DIST:-dist}
VERSION=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
PACKAGE=redis-dq
# The time of all files: that of the commit, or without git that of the changelog.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y CHANGELOG.md)}
export SOURCE_DATE_EPOCH
umask 022

mkdir -p "$DIST"
DIST=$(realpath "$DIST")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
work=$scratch/work
if [ -n "${PROFILE:-}" ]; then
    # The profile may be one of the files that are removed below.
    cp "$PROFILE" "$scratch/given.profdata"
    export PROFILE=$scratch/given.profdata
fi
# Files of an earlier run, perhaps of another commit, must not get into the new SHA256SUMS.
rm -f "$DIST"/dq-"$VERSION"{-linux-*.tar.gz,.profdata,.buildinfo} "$DIST"/"$PACKAGE"_"$VERSION"_*.deb \
    "$DIST"/dq-{server,queue-,php-}*{gz,zip} "$DIST"/dq_{server,queue}-*.whl "$DIST"/SHA256SUMS{,.asc} "$DIST"/dq-release-key.asc

# Builds the module and the terminal program for ARCH, if they are not given: sets MODULE, CLI and COUNTS, which is empty
# where no counts were used.
build_programs() {
    COUNTS=
    if [ -n "${DQ_MODULE:-}" ]; then
        MODULE=$DQ_MODULE
    elif [ -n "${PROFILE:-}" ] || scripts/setup.sh build pgo; then
        ARCH=$ARCH scripts/build-pgo.sh
        MODULE=$PGO_MODULE COUNTS=${PROFILE:-$TARGET/pgo/profile.profdata}
        [ "$ARCH" = "$(this_arch)" ] || MODULE=$TARGET/pgo/$ARCH/libdq.so
    else
        say "no llvm-profdata of LLVM $(llvm_version) is to be had: going on without profile-guided optimisation"
        build_release "$ARCH" . "$TARGET/dist"
        MODULE=$TARGET/dist/$(rust_target "$ARCH")/release/libdq.so
    fi
    [ -f "$MODULE" ] || die "no module at $MODULE"
    CLI=${DQ_CLI:-}
    if [ -z "$CLI" ]; then
        scripts/setup.sh build
        say "building the terminal program for $ARCH"
        build_release "$ARCH" cli "$TARGET/dist/cli"
        CLI=$TARGET/dist/cli/$(rust_target "$ARCH")/release/dq
    fi
    [ -f "$CLI" ] || die "no terminal program at $CLI"
}

# Prints the newest version of libc whose symbols the module or the program uses. They run with this version and later
# ones.
needed_libc() { grep -ahoE 'GLIBC_2\.[0-9]+' "$MODULE" "$CLI" | sort -uV | tail -n 1 | cut -d_ -f2; }

# Separates the debug symbols, which are two thirds of the size, from a program or library: FILE becomes
# $work/stripped/NAME and $work/debug/NAME.debug. Debuggers find the latter by a link in the former.
strip_symbols() {
    local file=$1 name=$2 objcopy=objcopy
    [ "$ARCH" = "$(this_arch)" ] || objcopy=$(tools_of "$ARCH")objcopy
    local symbols=$work/debug/$name.debug stripped=$work/stripped/$name
    mkdir -p "$work/debug" "$work/stripped"
    "$objcopy" --only-keep-debug "$file" "$symbols"
    chmod 644 "$symbols"
    "$objcopy" --strip-unneeded "$file" "$stripped"
    "$objcopy" --add-gnu-debuglink="$symbols" "$stripped"
}

# Prints the sections of redis.conf from the section $1 to before the section $2.
conf_section() {
    sed -n "/^# -\+ $1\$/,/^# -\+ $2\$/p" redis.conf | sed '$d'
}

# Replaces a line of a file. Fails if the file does not contain the line.
replace_line() {
    local file=$1 from=$2 to=$3
    grep -qxF "$from" "$file" || die "$file has no line: $from"
    awk -v from="$from" -v to="$to" '$0 == from { $0 = to } { print }' "$file" >"$file.new"
    mv "$file.new" "$file"
}

# Replaces the section HEADING of FILE with the contents of the file TEXT. The section ends at the next heading of the
# same or a higher level.
replace_section() {
    local file=$1 heading=$2 text=$3
    grep -qxF "$heading" "$file" || die "$file has no heading: $heading"
    awk -v heading="$heading" -v text="$text" -v glibc="$GLIBC" '
        BEGIN { match(heading, /^#+/); level = RLENGTH }
        /^```/ { code = !code }
        !code && skipping && match($0, /^#+ /) && RLENGTH - 1 <= level { skipping = 0 }
        !skipping { print }
        $0 == heading { skipping = 1; print ""; while ((getline line < text) > 0) { gsub(/@GLIBC@/, glibc, line); print line }; print "" }
    ' "$file" >"$file.new"
    mv "$file.new" "$file"
}

# Copies the documentation, pictures and examples into DIRECTORY. The layout is that of the repository, so links between
# the pages work. The instructions to start a server are those for KIND, which is tar or deb, because there is nothing
# to compile. The Python package is included as source, which pip can install.
install_documents() {
    local unwanted=(-name '.?*' -o -name __pycache__ -o -name node_modules -o -name build -o -name '*.egg-info')
    local file mode
    find README.md README.zh-CN.md CHANGELOG.md CONTRIBUTING.md SECURITY.md redis.conf docs monitoring examples clients \
        \( "${unwanted[@]}" -o -path clients/python/tests -o -path clients/php/tests -o -name phpunit.xml.dist \
        -o -path clients/node/test -o -path clients/node/dist -o -name '*_test.go' -o -path clients/go/testdata -o -name debian.mod \) -prune -o -type f -print0 |
        while IFS= read -rd '' file; do
            if [ -x "$file" ]; then mode=755; else mode=644; fi
            install -D -m "$mode" "$file" "$1/$file"
        done
    local kind=$2
    replace_section "$1/README.md" '## Start' "packaging/start-$kind.md"
    replace_section "$1/README.zh-CN.md" '## 启动' "packaging/start-$kind.zh-CN.md"
    replace_section "$1/docs/quickstart.md" '## 1. Start a server' "packaging/start-$kind.md"
    replace_section "$1/docs/quickstart.zh-CN.md" '## 1. 启动服务器' "packaging/start-$kind.zh-CN.md"
}

# Installs the terminal program with its manual pages and completion into DIRECTORY. Pages and completion are written by
# the program itself, or for another processor by one of this machine.
install_program() {
    local runs=$CLI
    if [ "$ARCH" != "$(this_arch)" ]; then
        scripts/cli.sh
        runs=$TARGET/cli/release/dq
    fi
    DQ_CLI=$work/stripped/dq DQ_RUN=$runs DESTDIR= PREFIX=$1 scripts/cli.sh install
}

build_tar() {
    local name=dq-$VERSION-linux-$ARCH
    local root=$work/$name
    mkdir -p "$root"
    install -m 755 "$work/stripped/libdq.so" "$root"
    install_program "$root"
    install_documents "$root" tar
    install -m 644 LICENSE "$root"
    install -D -m 644 packaging/systemd/redis-server.service.d.conf "$root/systemd/redis-server.service.d.conf"
    # redis.conf names the module relative to ./data/6379, the working directory of the server.
    replace_line "$root/redis.conf" 'loadmodule ../../target/release/libdq.so' 'loadmodule ../../libdq.so'
    # shellcheck disable=SC2016
    replace_line "$root/redis.conf" \
        '# `make run` starts it, with other data for another port. By hand, from the root of the repository, after `make build`:' \
        '# Start it from this directory:'
    (cd "$root" && find . -type f ! -name SHA256SUMS -printf '%P\n' | LC_ALL=C sort | xargs sha256sum >SHA256SUMS)
    archive "$name"
}

# Packs the directory $work/NAME as dist/NAME.tar.gz.
archive() {
    tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --format=gnu \
        -C "$work" -cf - "$1" | gzip "-${COMPRESSION:-9}n" >"$DIST/$1.tar.gz"
}

# Packs the debug symbols that strip_symbols has separated.
build_debug() {
    local name=dq-$VERSION-linux-$ARCH-debug
    mv "$work/debug" "$work/$name"
    archive "$name"
}

# Prints the size of a package's files in KiB, as dpkg-gencontrol counts it. du would count the size of the folders
# themselves, which each file system does in its own way.
installed_size() {
    find "$1" -path "$1/DEBIAN" -prune -o -type f -printf '%s\n' -o -printf '1\n' |
        awk '{ sum += int(($1 + 1023) / 1024) } END { print sum }'
}

build_deb() {
    local root=$work/deb
    local doc=$root/usr/share/doc/$PACKAGE
    mkdir -p "$root/DEBIAN" "$root/etc/redis"
    # Redis refuses a module without execute permission. The systemd units of redis-server and valkey-server allow
    # modules only below /usr/lib and /lib (NoExecPaths, ExecPaths).
    install -D -m 755 "$work/stripped/libdq.so" "$root/usr/lib/redis/modules/libdq.so"
    install_program "$root/usr"
    find "$root/usr/share/man" -type f -exec gzip -9n {} +
    local service
    for service in dq-exporter dq-web; do
        install -D -m 644 "packaging/systemd/$service.service" "$root/lib/systemd/system/$service.service"
        # The file may hold a password.
        install -D -m 600 "packaging/systemd/$service.default" "$root/etc/default/$service"
    done
    install_documents "$doc" deb
    gzip -9nc CHANGELOG.md >"$doc/changelog.gz"

    {
        echo '# The dq module. /etc/redis/redis.conf reads this file where it says: include /etc/redis/dq.conf'
        echo "# Settings under which a queue can be relied on: $doc/redis.conf" | sed "s|$root||"
        echo
        conf_section module durability
    } >"$root/etc/redis/dq.conf"
    replace_line "$root/etc/redis/dq.conf" 'loadmodule ../../target/release/libdq.so' \
        'loadmodule /usr/lib/redis/modules/libdq.so'

    {
        echo 'Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/'
        echo 'Upstream-Name: dq'
        echo
        echo 'Files: *'
        echo "Copyright: $(sed -n 's/^Copyright (c) //p' LICENSE)"
        echo 'License: Expat'
        sed -n '5,$p' LICENSE | sed 's/^$/./; s/^/ /'
    } >"$doc/copyright"

    cat >"$doc/README.Debian" <<TEXT
dq for redis-server
===================

The package does not change the configuration of redis-server. To load the module, add one line to
/etc/redis/redis.conf and restart:

    include /etc/redis/dq.conf

    systemctl restart redis-server

With valkey-server it is /etc/valkey/valkey.conf and valkey-server. "dq top" then shows the queues.

For queues that must survive a crash set "appendonly yes" there as well, and leave maxmemory-policy
at noeviction; redis.conf beside this file gives the reasons.

What there is to read is beside this file, README.md first. The Python package for clients: copy the directory
clients/python to where you may write, and "pip install" it there.

Take the line out before you remove the package. A server with queues in its data does not start
without the module; it does not drop them.
TEXT

    cat >"$root/DEBIAN/control" <<TEXT
Package: $PACKAGE
Version: $VERSION
Architecture: $ARCH
Maintainer: the dq authors <dq@localhost>
Section: database
Priority: optional
Installed-Size: $(installed_size "$root")
Depends: redis-server (>= 5:7.0) | valkey-server, libc6 (>= $GLIBC), libgcc-s1
Suggests: prometheus
Conflicts: dq
Description: durable, ordered delay queue for Redis, as a native module
 Adds a data type and commands to redis-server for work that is done later, once
 more on failure, or in order per user: due times to the millisecond, leases,
 retries, groups, schedules, records. Nothing else has to run beside it.
 .
 The program dq shows and manages the queues in a terminal. The package dq of
 Debian, a tool for DNS, has a program of the same name.
TEXT
    printf '%s\n' /etc/redis/dq.conf /etc/default/dq-exporter /etc/default/dq-web >"$root/DEBIAN/conffiles"
    # DPKG_ROOT is the directory into which dpkg installs, if it is not /.
    cat >"$root/DEBIAN/postinst" <<'TEXT'
#!/bin/sh
set -e
if [ "$1" = configure ] && ! grep -qs '^include /etc/redis/dq.conf' "$DPKG_ROOT/etc/redis/redis.conf"; then
    echo "redis-dq: to load the module, add 'include /etc/redis/dq.conf' to /etc/redis/redis.conf and restart redis-server"
fi
TEXT
    cat >"$root/DEBIAN/prerm" <<'TEXT'
#!/bin/sh
set -e
if [ "$1" = remove ] && grep -qs '^include /etc/redis/dq.conf' "$DPKG_ROOT/etc/redis/redis.conf"; then
    echo "redis-dq: take 'include /etc/redis/dq.conf' out of /etc/redis/redis.conf: redis-server does not start with it"
fi
TEXT
    chmod 755 "$root/DEBIAN/postinst" "$root/DEBIAN/prerm"
    (cd "$root" && find usr lib -type f | LC_ALL=C sort | xargs md5sum >DEBIAN/md5sums)
    find "$root" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
    dpkg-deb --root-owner-group -Zxz ${COMPRESSION:+"-z$COMPRESSION"} --build "$root" "$DIST/${PACKAGE}_${VERSION}_$ARCH.deb" >/dev/null
}

# Packs the programs for one processor.
pack() {
    build_programs
    GLIBC=$(needed_libc)
    say "packing version $VERSION for $ARCH"
    strip_symbols "$MODULE" libdq.so
    strip_symbols "$CLI" dq
    build_tar
    build_deb
    build_debug
    rm -rf "$work"
}

# Prints the tools that the output depends on.
build_info() {
    echo "commit: $(git rev-parse HEAD 2>/dev/null || echo unknown)"
    echo "time: $SOURCE_DATE_EPOCH"
    echo "system: $(system_name)"
    rustc -vV | sed -n 's/^rustc /rustc: /p; s/^LLVM version/llvm/p'
    dpkg-query --show --showformat='${Package}: ${Version}\n' gcc binutils libc6-dev libclang1-14 dpkg xz-utils gzip tar 2>/dev/null || true
}

# Signs SHA256SUMS with a key of gpg, and puts the public key beside it.
sign() {
    local fingerprint
    gpg --batch --yes --local-user "$SIGN_KEY" --armor --detach-sign --output SHA256SUMS.asc SHA256SUMS
    gpg --batch --armor --export "$SIGN_KEY" >dq-release-key.asc
    fingerprint=$(gpg --batch --with-colons --list-keys "$SIGN_KEY" | awk -F: '$1 == "fpr" { print $10; exit }')
    say "signed with the key $fingerprint"
}

for ARCH in "${ARCHES[@]}"; do pack; done
build_info >"$DIST/dq-$VERSION.buildinfo"
[ -z "$COUNTS" ] || install -m 644 "$COUNTS" "$DIST/dq-$VERSION.profdata"
if [ "${BUNDLE:-no}" = yes ]; then
    ARCHES="${ARCHES[*]}" PROFILE=$COUNTS DIST=$DIST scripts/bundle.sh
    DIST=$DIST scripts/client-archives.sh
fi
cd "$DIST"
find . -maxdepth 1 \( -name "dq-$VERSION[-.]*" -o -name "${PACKAGE}_${VERSION}_*.deb" -o -name 'dq-server*gz' -o -name 'dq-queue-*.tgz' -o -name 'dq-php-*.zip' -o -name '*.whl' \) -printf '%f\n' |
    LC_ALL=C sort | xargs sha256sum >SHA256SUMS
if [ -n "${SIGN_KEY:-}" ]; then
    sign
else
    say "SHA256SUMS is not signed: SIGN_KEY=FINGERPRINT names the key of gpg for it"
fi
say "in $DIST:"
cat SHA256SUMS
