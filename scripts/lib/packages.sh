# shellcheck shell=bash The names of this system's packages. common.sh sources it. dq is tested on Debian 12 and 13, where
# scripts/setup.sh installs missing packages. On other systems, the first line that a script prints says what works and
# what to install.

# The things that scripts/setup.sh checks. packages_of prints the packages of each.
THINGS=(compiler libclang server python)

# Prints the program that installs packages on this system, or nothing if it is unknown.
manager() {
    local one
    for one in apt-get dnf apk brew; do
        if have "$one"; then
            echo "$one"
            return
        fi
    done
}

# Prints the packages of things: packages_of MANAGER THING...
packages_of() {
    local manager=$1 thing
    shift
    for thing in "$@"; do
        case $manager:$thing in
        apt-get:compiler) echo gcc libc6-dev ;;
        apt-get:cxx) echo g++ ;;
        apt-get:libclang) echo clang libclang-dev ;;
        # The package is not redis-server, because its service would start at every boot, without the module, on the
        # port of `make run`.
        apt-get:server) echo redis-tools ;;
        # In Debian, venv is a separate package.
        apt-get:python) echo python3 python3-venv ;;
        dnf:compiler) echo gcc ;;
        dnf:cxx) echo gcc-c++ ;;
        dnf:libclang) echo clang clang-devel ;;
        dnf:server) echo valkey valkey-compat-redis ;;
        dnf:python) echo python3 ;;
        apk:compiler) echo gcc musl-dev ;;
        apk:cxx) echo g++ ;;
        apk:libclang) echo clang clang-dev ;;
        apk:server) echo redis ;;
        apk:python) echo python3 ;;
        # The compilers of macOS are installed with `xcode-select --install`.
        brew:compiler | brew:cxx) ;;
        brew:libclang) echo llvm ;;
        brew:server) echo redis ;;
        brew:python) echo python ;;
        *) echo "$thing" ;;
        esac
    done | tr '\n' ' ' | sed 's/ $//'
}

# Prints the command that installs things: install_line THING...
install_line() {
    local manager
    manager=$(manager)
    case $manager in
    apt-get) echo "sudo apt-get install $(packages_of apt-get "$@")" ;;
    dnf) echo "sudo dnf install $(packages_of dnf "$@")" ;;
    apk) echo "sudo apk add $(packages_of apk "$@")" ;;
    brew) echo "brew install $(packages_of brew "$@")" ;;
    *) echo "install a C compiler, libclang, Redis 7.0 or newer, Python and make" ;;
    esac
}

# Prints the name of this system, such as "Debian GNU/Linux 12 (bookworm)".
system_name() {
    if [ "$(uname -s)" = Darwin ]; then
        echo macOS
    elif [ -r /etc/os-release ]; then
        sed -n 's/^PRETTY_NAME="\{0,1\}\([^"]*\)"\{0,1\}$/\1/p' /etc/os-release
    else
        uname -s
    fi
}

# Prints one sentence about the supported parts, if this system is not Debian. Scripts that are called by other scripts
# print nothing.
greet() {
    local name tested="dq is tested on Debian 12 and 13"
    [ -z "${DQ_GREETED:-}" ] || return 0
    export DQ_GREETED=yes
    name=$(system_name)
    case $name:$(manager) in
    Debian*) ;;
    Ubuntu*) say "$tested; Ubuntu has what it needs from 24.04 on, and what is missing is installed with apt-get" ;;
    *:apt-get) say "$tested; on $name everything is meant to work where its Redis is 7.0 or newer, and what is missing is installed with apt-get" ;;
    macOS:*) say "$tested; on macOS \`make build\`, \`make run\` and \`make cli\` are meant to work but nobody has tried them, and the tests need Linux: xcode-select --install; $(install_line "${THINGS[@]}")" ;;
    Alpine*) say "$tested; on $name nobody has tried it, it needs Alpine's own Rust (rustup's builds no modules there), and nothing is installed for you: $(install_line "${THINGS[@]}") cargo" ;;
    *) say "$tested; on $name everything is meant to work but nobody has tried it, and nothing is installed for you: $(install_line "${THINGS[@]}")" ;;
    esac
}
