# shellcheck shell=bash Debian's archive through an apt of our own. Other scripts source it after common.sh.

ARCHIVE=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg

# Makes apt use its own sources, lists and downloads, in a directory. The system's apt is not changed, and no root is
# needed: use_own_apt DIRECTORY SUITE... (a suite with packages is PACKAGES:SUITE, the others have sources only)
use_own_apt() {
    local apt=$1 suite
    shift
    have apt-get || die "this comes from Debian's archive, and there is no apt-get here"
    [ -f "$KEYRING" ] || die "this comes from Debian's archive, and its keys are not here: $KEYRING"
    mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
    for suite; do
        case $suite in
        PACKAGES:*) echo "deb [signed-by=$KEYRING] $ARCHIVE ${suite#PACKAGES:} main" ;;
        *) echo "deb-src [signed-by=$KEYRING] $ARCHIVE $suite main" ;;
        esac
    done >"$apt/sources.list"
    cat >"$apt/apt.conf" <<EOF
Dir::Etc::sourcelist "$apt/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::State::lists "$apt/lists";
Dir::Cache "$apt/cache";
Acquire::Languages "none";
Acquire::Retries "3";
APT::Sandbox::User "$(id -un)";
EOF
    export APT_CONFIG=$apt/apt.conf
    apt-get -qq update
}
