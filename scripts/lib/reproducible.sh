# shellcheck shell=bash Builds that others can repeat: the output depends only on the commit, the compiler and the profile,
# not on the folder. Other scripts source it after common.sh.

# This machine's processor as Debian names it.
this_arch() {
    case $(uname -m) in
    x86_64) echo amd64 ;;
    aarch64 | arm64) echo arm64 ;;
    *) uname -m ;;
    esac
}

# The target of Rust for a processor.
rust_target() {
    case $1 in
    "$(this_arch)") rustc -vV | sed -n 's/^host: //p' ;;
    amd64) echo x86_64-unknown-linux-gnu ;;
    arm64) echo aarch64-unknown-linux-gnu ;;
    *) die "the packages are built for amd64 and arm64, not for $1" ;;
    esac
}

# The prefix of the names of GCC and binutils for a processor.
tools_of() {
    case $1 in
    amd64) echo x86_64-linux-gnu- ;;
    arm64) echo aarch64-linux-gnu- ;;
    esac
}

# Ends with the packages to install, if programs for another processor cannot be built here: need_tools ARCH
need_tools() {
    local target tools
    target=$(rust_target "$1")
    tools=$(tools_of "$1")
    have "${tools}objcopy" && have "${tools}gcc" ||
        die "${tools}gcc and ${tools}objcopy build programs for $1: apt-get install gcc-${tools%-} libc6-dev-$1-cross"
    [ -d "$(rustc --print sysroot)/lib/rustlib/$target" ] ||
        die "this Rust has no library for $1: rustup target add $target"
}

# Prints options of rustc, one per line. With them no folder of this machine gets into the output.
without_folders() {
    local sysroot commit
    sysroot=$(rustc --print sysroot)
    commit=$(rustc -vV | sed -n 's/^commit-hash: //p')
    # The last matching option counts, and the target directory is usually below the sources.
    echo "--remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo"
    echo "--remap-path-prefix=$sysroot/lib/rustlib/src/rust=/rustc/$commit"
    echo "--remap-path-prefix=$PWD=/dq"
    echo "--remap-path-prefix=$TARGET=/target"
}

# Runs cargo build for a processor: build_release ARCH MANIFEST_DIRECTORY TARGET_DIRECTORY [OPTION OF RUSTC...]
# The output is in TARGET_DIRECTORY/TARGET OF RUST/release.
build_release() {
    local arch=$1 program=$2 output=$3 target tools suffix word
    local options folders maps=() environment=()
    shift 3
    target=$(rust_target "$arch")
    suffix=${target//-/_}
    read -ra options <<<"${RUSTFLAGS:-}"
    mapfile -t folders < <(without_folders)
    options+=("${folders[@]}" "$@")
    # The C and the assembly of dependencies name their folders, too.
    for word in "${folders[@]}"; do maps+=("$(printf %q "-ffile-prefix-map=${word#*=}")"); done
    environment+=("CC_SHELL_ESCAPED_FLAGS=1" "CFLAGS_$suffix=${maps[*]}")
    # Encoded flags, because paths may contain spaces.
    environment+=("CARGO_ENCODED_RUSTFLAGS=$(IFS=$'\x1f' && echo "${options[*]}")")
    if [ "$arch" != "$(this_arch)" ]; then
        need_tools "$arch"
        tools=$(tools_of "$arch")
        environment+=("CARGO_TARGET_${suffix^^}_LINKER=${tools}gcc" "CC_$suffix=${tools}gcc" "AR_$suffix=${tools}ar"
            "BINDGEN_EXTRA_CLANG_ARGS_$suffix=-I/usr/${tools%-}/include")
    fi
    # An explicit target keeps the options out of build scripts.
    env "${environment[@]}" cargo build --release --target "$target" --manifest-path "$program/Cargo.toml" \
        --target-dir "$output" "${CARGO_FLAGS_LIST[@]}"
}
