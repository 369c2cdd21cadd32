#!/usr/bin/env bash
# Checks that rust-version in Cargo.toml is right: it must be the newest Rust that any crate in any Cargo.lock needs,
# and every Cargo.toml and the README files must state this version.
#
#   scripts/rust-version.sh            compares the versions
#   scripts/rust-version.sh --build    also compiles everything with exactly this version, if rustup can provide it

set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib/common.sh

need_rust
stated=$(rust_needed)

manifests=()
while IFS= read -r lock; do
    manifests+=("${lock%.lock}.toml")
done < <(find . \( -name target -o -name '.?*' -o -name node_modules -o -name dist \) -prune -o -name Cargo.lock -print)

# Prints the versions that crates need, newest first. This includes our own crates, which state rust-version.
asked() {
    local manifest
    for manifest in "${manifests[@]}"; do
        cargo metadata --quiet --locked --format-version 1 --manifest-path "$manifest"
    done | grep -o '"rust_version":"[^"]*"' | cut -d '"' -f 4 | sort -u -t . -k 1,1nr -k 2,2nr
}

newest=$(asked | sed -n 1p | cut -d . -f 1,2)
[ "$newest" = "$stated" ] || die "Cargo.toml says rust-version $stated, but the crates in Cargo.lock need $newest"
for manifest in "${manifests[@]}"; do
    others=$(cargo metadata --quiet --locked --no-deps --format-version 1 --manifest-path "$manifest" |
        grep -o '"rust_version":[^,}]*' | sort -u)
    [ "$others" = "\"rust_version\":\"$stated\"" ] || die "$manifest does not say rust-version $stated as Cargo.toml does"
done
for page in README.md README.zh-CN.md; do
    grep -q "Rust $stated" "$page" || die "$page does not say that Rust $stated is needed"
done
say "Rust $stated is stated and needed"

if [ "${1:-}" = --build ]; then
    if ! have rustup || ! rustup run "$stated" rustc --version >/dev/null 2>&1 &&
        ! rustup --quiet toolchain install "$stated" --profile minimal --no-self-update >/dev/null 2>&1; then
        say "rustup cannot get Rust $stated here: nothing is compiled with it"
        exit 0
    fi
    for manifest in "${manifests[@]}"; do
        say "checking $manifest with Rust $stated"
        # Tests are included if they can be built with cargo alone.
        targets=()
        [ "$manifest" != ./Cargo.toml ] || targets=(--workspace --all-targets)
        RUSTUP_TOOLCHAIN=$stated cargo check --quiet --locked --manifest-path "$manifest" \
            --target-dir "$TARGET/rust-$stated" ${targets[@]+"${targets[@]}"}
    done
fi
