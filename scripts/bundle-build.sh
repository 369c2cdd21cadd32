# shellcheck shell=bash Builds the three programs of a bundle: Valkey, the module and dq, for a processor and a libc.
# scripts/bundle.sh sources it after lib/common.sh and lib/reproducible.sh.
#
# zig is the compiler of the C sources and the linker of all: it has the headers and stubs of every glibc, so programs
# that are linked here run with an older one than this machine's, and it builds for musl and for arm64 as well.

# The oldest glibc that the programs run with, that of Debian 11 and Ubuntu 20.04.
GLIBC=2.31
TOOLS=$TARGET/bundle/tools

# Installs zig and cargo-zigbuild of packaging/server/requirements.txt in a separate folder.
get_tools() {
    local wanted=packaging/server/requirements.txt
    if ! cmp -s "$wanted" "$TOOLS/requirements.txt"; then
        say "installing what $wanted names into $TOOLS"
        "$PYTHON" -m venv --clear "$TOOLS"
        "$TOOLS/bin/pip" install --quiet --disable-pip-version-check --requirement "$wanted"
        cp "$wanted" "$TOOLS/requirements.txt"
    fi
    ZIG=$("$TOOLS/bin/python" -c 'import pathlib, ziglang; print(pathlib.Path(ziglang.__file__).parent / "zig")')
}

# The target of zig for a processor and a libc: zig_target ARCH LIBC
zig_target() {
    local processor=x86_64
    [ "$1" != arm64 ] || processor=aarch64
    case $2 in
    glibc) echo "$processor-linux-gnu.$GLIBC" ;;
    musl) echo "$processor-linux-musl" ;;
    *) die "the bundles are built for glibc and musl, not for $2" ;;
    esac
}

# The target of Rust: bundle_rust_target ARCH LIBC
bundle_rust_target() {
    local processor=x86_64
    [ "$1" != arm64 ] || processor=aarch64
    case $2 in
    glibc) echo "$processor-unknown-linux-gnu" ;;
    musl) echo "$processor-unknown-linux-musl" ;;
    esac
}

# Prints the sources of Valkey, a tar.gz: ENGINE_SOURCE, or the one of Debian's archive. Debian's sid moves on, so an older
# version must be given.
engine_source() {
    local version=$1 sum=$2 file=${ENGINE_SOURCE:-$TARGET/bundle/valkey-$1.tar.gz} work
    if [ ! -f "$file" ]; then
        [ -z "${ENGINE_SOURCE:-}" ] || die "there is no $ENGINE_SOURCE, which ENGINE_SOURCE names"
        work=$(mktemp -d)
        say "getting the sources of Valkey $version from Debian's archive"
        (
            . scripts/lib/apt.sh
            use_own_apt "$TARGET/bundle/apt" sid
            # apt-get source knows no patterns, as apt-get install does.
            revision=$(apt-cache showsrc valkey | sed -n "s/^Version: \\($version-.*\\)/\\1/p" | head -n 1)
            [ -n "$revision" ] && cd "$work" && apt-get -qq source --download-only "valkey=$revision"
        ) >/dev/null || die "Debian's archive has no Valkey $version: ENGINE_SOURCE=/path/to/valkey-$version.tar.gz names its sources"
        mv "$work"/valkey_"$version".orig.tar.gz "$file"
        rm -rf "$work"
    fi
    [ "$(sha256sum <"$file")" = "$sum  -" ] || die "$file is not the sources of Valkey $version that packaging/server/engine names"
    echo "$file"
}

# Builds Valkey: build_engine ARCH LIBC OUTPUT
build_engine() {
    local arch=$1 libc=$2 output=$3 VERSION SHA256 PATCH source work flags options host tool built
    . packaging/server/engine
    built=$output/engine-$VERSION-$(sha256sum <"$PATCH" | cut -c 1-12)
    [ ! -f "$built" ] || return 0
    source=$(engine_source "$VERSION" "$SHA256")
    work=$output/valkey
    rm -rf "$work" "$output"/engine-*
    mkdir -p "$work" "$output/zig"
    tar -xf "$source" -C "$work" --strip-components 1
    patch --quiet --directory="$work" --strip=1 <"$PATCH" || die "$PATCH is not for Valkey $VERSION"
    for tool in cc ar ranlib; do
        printf '#!/bin/sh\nexec "%s" %s %s "$@"\n' "$ZIG" $tool "$([ $tool != cc ] || echo "-target $(zig_target "$arch" "$libc")")" >"$output/zig/$tool"
        chmod 755 "$output/zig/$tool"
    done
    # jemalloc is not optimised if its flags lack -O. zig checks for undefined behaviour unless a flag disables it.
    flags="-O2 -g0 -fno-sanitize=undefined -ffile-prefix-map=$work=/valkey"
    host=$(zig_target "$arch" "$libc")
    options=--host=${host%."$GLIBC"}
    # Kernels for arm64 have pages of 4 to 64 KB, and this one works on all of them.
    [ "$arch" != arm64 ] || options+=" --with-lg-page=16"
    # A program that is linked statically to musl cannot load a module. It must have no copies of musl's variables: in
    # the library that zig links with, all of them have one address, so the linker takes them for one variable.
    [ "$libc" != musl ] || { local dynamic=-dynamic && flags+=" -fPIC"; }
    say "building Valkey $VERSION for $arch and $libc: $output/engine.log"
    make -C "$work/src" -j2 CC="$output/zig/cc" AR="$output/zig/ar" RANLIB="$output/zig/ranlib" CFLAGS="$flags" \
        SERVER_LDFLAGS="-s ${dynamic:-}" OPTIMIZATION=-O2 DEBUG=-g0 MALLOC=jemalloc BUILD_TLS=no USE_SYSTEMD=no \
        JEMALLOC_CONFIGURE_OPTS="$options" valkey-server valkey-cli >"$output/engine.log" 2>&1 ||
        die "the build failed:"$'\n'"$(tail -n 20 "$output/engine.log")"
    install -m 755 "$work/src/valkey-server" "$work/src/valkey-cli" "$output"
    [ "$libc" != musl ] || must_copy_nothing "$output/valkey-server" "$output/valkey-cli"
    cp "$work/COPYING" "$output/COPYING"
    rm -rf "$output/licences"
    local dependency
    for dependency in jemalloc/COPYING lua/COPYRIGHT hdr_histogram/LICENSE.txt libvalkey/COPYING linenoise/LICENSE fpconv/LICENSE.txt; do
        [ ! -f "$work/deps/$dependency" ] || install -D -m 644 "$work/deps/$dependency" "$output/licences/${dependency%%/*}"
    done
    rm -rf "$work"
    touch "$built"
}

# Prints options of cargo that build Rust's own library, if this Rust has none for a target: std_options TARGET
std_options() {
    [ ! -d "$(rustc --print sysroot)/lib/rustlib/$1" ] || return 0
    [ -n "${RUST_SRC:-}" ] || [ -d "$(rustc --print sysroot)/lib/rustlib/src/rust/library" ] ||
        die "this Rust has no library for $1: rustup target add $1. Or RUST_SRC=/path/to/library names its sources, as Debian's package rust-src of the same version has them"
    echo -Zbuild-std=std,panic_unwind
}

# Builds a crate: build_crate ARCH LIBC MANIFEST_DIRECTORY OUTPUT [OPTION OF RUSTC...]
build_crate() {
    local arch=$1 libc=$2 program=$3 output=$4 target suffix folders word std
    local options environment=() maps=() place
    shift 4
    place=$(realpath "$program")
    target=$(bundle_rust_target "$arch" "$libc")
    suffix=${target//-/_}
    read -ra options <<<"${RUSTFLAGS:-}"
    mapfile -t folders < <(without_folders)
    [ -z "${RUST_SRC:-}" ] || folders+=("--remap-path-prefix=$RUST_SRC=/rustc/library")
    options+=("${folders[@]}" -Cstrip=symbols "$@")
    for word in "${folders[@]}"; do maps+=("$(printf %q "-ffile-prefix-map=${word#*=}")"); done
    environment+=("CC_SHELL_ESCAPED_FLAGS=1" "CFLAGS_$suffix=${maps[*]}")
    std=$(std_options "$target")
    if [ -n "$std" ]; then
        environment+=("RUSTC_BOOTSTRAP=1")
        [ -z "${RUST_SRC:-}" ] || environment+=("__CARGO_TESTS_ONLY_SRC_ROOT=$RUST_SRC")
    fi
    [ "$libc" = musl ] || target=$target.$GLIBC
    environment+=("CARGO_ENCODED_RUSTFLAGS=$(IFS=$'\x1f' && echo "${options[*]}")" "CARGO_ZIGBUILD_ZIG_PATH=$ZIG")
    say "building $program for $arch and $libc"
    # The folder is elsewhere, because below its own directory zig names its headers by relative paths, which the
    # generator of the bindings to the module API does not find.
    mkdir -p "$TARGET/bundle/elsewhere"
    # shellcheck disable=SC2086
    (cd "$TARGET/bundle/elsewhere" && env PATH="$TOOLS/bin:$PATH" "${environment[@]}" cargo-zigbuild zigbuild --release \
        --target "$target" $std --manifest-path "$place/Cargo.toml" --target-dir "$output" "${CARGO_FLAGS_LIST[@]}")
}

# Builds all programs for a processor and a libc into a directory: build_programs_of ARCH LIBC OUTPUT
build_programs_of() {
    local arch=$1 libc=$2 output=$3 target module=() program=()
    mkdir -p "$output"
    target=$(bundle_rust_target "$arch" "$libc")
    # A module must be loaded by a program that has the C library already. dq is alone, and runs on every system that way.
    if [ "$libc" = musl ]; then
        module+=(-Ctarget-feature=-crt-static)
        program+=(-Ctarget-feature=+crt-static)
    fi
    [ -z "${PROFILE:-}" ] || module+=("-Cprofile-use=$PROFILE")
    build_engine "$arch" "$libc" "$output"
    build_crate "$arch" "$libc" cli "$TARGET/bundle/cli" "${program[@]}"
    install -m 755 "$TARGET/bundle/cli/$target/release/dq" "$output/dq"
    build_crate "$arch" "$libc" . "$TARGET/bundle/module" "${module[@]}"
    install -m 755 "$TARGET/bundle/module/$target/release/libdq.so" "$output/libdq.so"
    [ "$libc" = musl ] || must_need_no_newer_glibc "$output"
}

# Ends if a program has copies of variables of the C library: must_copy_nothing PROGRAM...
must_copy_nothing() {
    local program
    for program; do
        ! readelf --relocs --wide "$program" | grep -q '_COPY ' || die "$program has copies of variables of its libc, which crash with musl"
    done
}

# Ends if a program uses symbols of a newer glibc than GLIBC, which the names of the files promise.
must_need_no_newer_glibc() {
    local name needed
    for name in dq libdq.so valkey-server valkey-cli; do
        needed=$(grep -ahoE 'GLIBC_2\.[0-9]+' "$1/$name" | sort -uV | tail -n 1 | cut -d_ -f2)
        at_least "$GLIBC" "$needed" || die "$1/$name needs glibc $needed, newer than $GLIBC"
    done
}
