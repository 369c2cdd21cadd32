#!/bin/sh
# The entrypoint of the image. It does what that of valkey/valkey does, and loads the module:
#
#   docker run dq-server                                      # durable: appendonly yes, noeviction
#   docker run dq-server --maxmemory 2gb                      # options of valkey-server
#   docker run dq-server /etc/valkey.conf                     # a configuration of your own, of which nothing is changed
#   docker run dq-server dq top                               # another program
#   VALKEY_EXTRA_FLAGS, DQ_MODULE                             # more options; another module, or none with DQ_MODULE=

set -e
MODULE=${DQ_MODULE-/usr/local/libexec/dq/libdq.so}

# The first word is an option, or a file with settings.
case ${1-} in
-* | *.conf) set -- valkey-server "$@" ;;
esac

case ${1-} in
valkey-server | redis-server)
    # The server gives up the rights of root, and its files belong to its user.
    if [ "$(id -u)" = 0 ] && [ -z "${VALKEY_ENTRYPOINT_AGAIN-}" ]; then
        find . \! -user valkey -exec chown valkey '{}' +
        export VALKEY_ENTRYPOINT_AGAIN=yes
        exec setpriv --reuid valkey --regid valkey --clear-groups -- "$0" "$@"
    fi
    server=$1
    shift
    # Files of the server are for its user alone.
    [ "$(umask)" != 0022 ] || umask 0077
    case ${1-} in
    *.conf)
        conf=$1
        shift
        # Settings of a file win over defaults, and it may load the module itself.
        if [ -z "$MODULE" ] || grep -qs '^ *loadmodule .*libdq' "$conf"; then
            set -- "$conf" "$@"
        else
            set -- "$conf" --loadmodule "$MODULE" "$@"
        fi
        ;;
    *)
        # Who reaches the server is decided by the container's network, as in valkey/valkey. What comes later wins.
        set -- --protected-mode no --appendonly yes --maxmemory-policy noeviction "$@"
        [ -z "$MODULE" ] || set -- --loadmodule "$MODULE" "$@"
        ;;
    esac
    # shellcheck disable=SC2086
    exec "$server" "$@" ${VALKEY_EXTRA_FLAGS-}
    ;;
esac
exec "$@"
