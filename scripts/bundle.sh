#!/usr/bin/env bash
# Builds the bundles of `dq server`: Valkey, the module and dq in one package, which needs no compiler, no root and no
# server. For each processor of ARCHES (amd64, arm64; default: this machine's) and each libc of LIBCS (glibc, musl;
# default: both) it makes in dist/
#
#   dq-server-VERSION-linux-ARCH[-musl].tar.gz      for every Linux with glibc 2.31 or newer, or with musl
#   dq_server-VERSION-py3-none-PLATFORM.whl         the same for pip
#   dq-server-linux-ARCH[-musl]-VERSION.tgz         the same for npm
#
# and once dq-server-VERSION.tgz, which depends on those of npm. `make dist` calls it.
#
#   ENGINE_SOURCE    the sources of the Valkey that packaging/server/engine names; default: from Debian's archive
#   RUST_SRC         the sources of Rust's own library, for targets that this Rust has no library for
#   PROFILE          the counts of profile-guided optimisation (scripts/build-pgo.sh); without, the module is built without
#   DIST             the output directory (default: dist)

set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib/common.sh
. scripts/lib/reproducible.sh
. scripts/bundle-build.sh

read -ra ARCHES <<<"${ARCHES:-$(this_arch)}"
read -ra LIBCS <<<"${LIBCS:-glibc musl}"
DIST=$(absolute "${DIST:-dist}")
VERSION=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y CHANGELOG.md)}
export SOURCE_DATE_EPOCH
umask 022

scripts/setup.sh build
have make || die "make builds Valkey: apt-get install make"
have patch || die "patch mends Valkey: apt-get install patch"
# Before anything is built.
for arch in "${ARCHES[@]}"; do
    for libc in "${LIBCS[@]}"; do
        zig_target "$arch" "$libc" >/dev/null
        std_options "$(bundle_rust_target "$arch" "$libc")" >/dev/null
    done
done
get_tools
mkdir -p "$DIST" "$TARGET/bundle"
rm -f "$DIST"/dq-server*-"$VERSION"*.t*gz "$DIST"/dq-server-"$VERSION".tgz "$DIST"/dq_server-"$VERSION"-*.whl
bundles=()
for arch in "${ARCHES[@]}"; do
    for libc in "${LIBCS[@]}"; do
        build_programs_of "$arch" "$libc" "$TARGET/bundle/$arch-$libc"
        bundles+=("$arch-$libc=$TARGET/bundle/$arch-$libc")
    done
done
"$PYTHON" -m scripts.bundle --version "$VERSION" --epoch "$SOURCE_DATE_EPOCH" --dist "$DIST" "${bundles[@]}"
