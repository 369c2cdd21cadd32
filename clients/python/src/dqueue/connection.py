"""Clients of redis-py with settings that suit a queue."""

import urllib.parse
from typing import Any

import redis
import redis.asyncio
import redis.asyncio.cluster
import redis.asyncio.retry
import redis.asyncio.sentinel
import redis.backoff
import redis.cluster
import redis.retry
import redis.sentinel

SOCKET_TIMEOUT = 10.0
"""Seconds after which `connect` gives up on a reply."""

_CONNECTING = 5.0
_MANY = 2**31
"""The default of redis-py before its version 8."""
_SCHEMES = {"dq": "redis", "dqs": "rediss"}


def connect(url: str, **options: Any) -> redis.Redis:
    """Returns a redis-py client that suits a queue.

    It speaks RESP3, gives up on a silent server after 10 s, and repeats nothing by itself: redis-py's own default
    repeats any command whose reply was lost, and that would add the messages of `Queue.send_many` twice. `Queue.send`
    repeats itself, safely. `options` are those of `redis.Redis.from_url`.
    """
    return redis.Redis.from_url(redis_url(url), **_suited(options, redis.retry.Retry(redis.backoff.NoBackoff(), 0)))


def redis_url(url: str) -> str:
    """Returns the URL for redis-py. `dq://` stands for `redis://`, and `dqs://` for `rediss://`."""
    scheme, _, rest = url.partition("://")
    if scheme != "unix" and not _is_one_server(rest):
        # Errors are logged. That of redis-py, or of the look-up of the host, would show a part of the password.
        raise ValueError("the URL is not redis://user:password@host:port/db; a password with /, # or ? must be escaped")
    return f"{_SCHEMES.get(scheme, scheme)}://{rest}"


def _is_one_server(rest: str) -> bool:
    """Returns whether the host, the port and the db of the URL are free of parts of a password."""
    try:
        parts = urllib.parse.urlsplit(f"redis://{rest}")
        # Sentinels have several addresses, and each has a port.
        _ = "," in parts.netloc or parts.port
    except ValueError:
        return False
    return "@" not in parts.path + parts.fragment + parts.query.partition("=")[0]


def open_client(url: str, **options: Any) -> Any:
    """Returns a client for the URL of a server, of a cluster, or of Sentinels. The drivers' URLs are opened by it.

        redis://host:port/db, rediss://...        a server
        redis+cluster://host:port                 any node of a cluster
        redis+sentinel://host:port,host:port/name/db    the primary of that name; user and password are those of the server

    `dq` may stand for `redis`, and `dqs` for `rediss`. `options` are those of redis-py's client of that kind.
    """
    plain, kind = _kind(url)
    if kind == "cluster":
        return connect_cluster(plain, **options)
    if kind == "sentinel":
        hosts, name, given = _sentinels(plain)
        suited = _suited(given | options, redis.retry.Retry(redis.backoff.NoBackoff(), 0))
        sentinel: Any = redis.sentinel.Sentinel
        return sentinel(hosts, **suited).master_for(name)
    return connect(plain, **options)


def open_client_asyncio(url: str, **options: Any) -> Any:
    """`open_client` for asyncio."""
    plain, kind = _kind(url)
    if kind == "cluster":
        return connect_cluster_asyncio(plain, **options)
    if kind == "sentinel":
        hosts, name, given = _sentinels(plain)
        suited = _suited(given | options, redis.asyncio.retry.Retry(redis.backoff.NoBackoff(), 0))
        sentinel: Any = redis.asyncio.sentinel.Sentinel
        return sentinel(hosts, **suited).master_for(name)
    return connect_asyncio(plain, **options)


def _kind(url: str) -> tuple[str, str]:
    """Returns the URL with the scheme of redis-py, and the kind of its target: a server (""), a cluster or
    Sentinels.
    """
    scheme, _, rest = url.partition("://")
    base, _, kind = scheme.partition("+")
    if kind not in ("", "cluster", "sentinel"):
        raise ValueError(f"the scheme of a URL is redis, redis+cluster or redis+sentinel, not {scheme!r}")
    return redis_url(f"{base}://{rest}"), kind


def _sentinels(url: str) -> tuple[list[tuple[str, int]], str, dict[str, Any]]:
    """Returns the addresses of the Sentinels, the name of the primary, and options of the connections to it."""
    parts = urllib.parse.urlsplit(url)
    user, _, hosts = parts.netloc.rpartition("@")
    username, _, password = user.partition(":")
    name, _, db = parts.path.strip("/").partition("/")
    if not hosts or not name:
        # Errors are logged, and the URL may have a password.
        raise ValueError("a URL of Sentinels is redis+sentinel://host:port,host:port/name/db: this one lacks hosts or name")
    pairs = [address.partition(":") for address in hosts.split(",")]
    if not all((port or "0").isdecimal() for _, _, port in pairs) or not (db or "0").isdecimal():
        # A part of a password that is not escaped may be here.
        raise ValueError("a port or the db in the URL of Sentinels is no number; a password with / or # must be escaped")
    addresses = [(host, int(port or 26_379)) for host, _, port in pairs]
    given: dict[str, Any] = {"db": int(db or 0), "ssl": parts.scheme == "rediss"}
    given |= {"username": urllib.parse.unquote(username)} if username else {}
    given |= {"password": urllib.parse.unquote(password)} if password else {}
    return addresses, name, given


def connect_asyncio(url: str, **options: Any) -> redis.asyncio.Redis:
    """`connect` for asyncio."""
    retry = redis.asyncio.retry.Retry(redis.backoff.NoBackoff(), 0)
    client: redis.asyncio.Redis = redis.asyncio.Redis.from_url(redis_url(url), **_suited(options, retry))
    return client


def connect_cluster(url: str, **options: Any) -> redis.cluster.RedisCluster:
    """`connect` for a Redis Cluster. The URL names any of its nodes."""
    client: redis.cluster.RedisCluster = redis.cluster.RedisCluster.from_url(
        redis_url(url), **_suited_to_cluster(options, redis.retry.Retry(redis.backoff.NoBackoff(), 0))
    )
    return client


def connect_cluster_asyncio(url: str, **options: Any) -> redis.asyncio.cluster.RedisCluster:
    """`connect_cluster` for asyncio."""
    retry = redis.asyncio.retry.Retry(redis.backoff.NoBackoff(), 0)
    client: redis.asyncio.cluster.RedisCluster = redis.asyncio.cluster.RedisCluster.from_url(
        redis_url(url), **_suited_to_cluster(options, retry)
    )
    return client


def _suited_to_cluster(options: dict[str, Any], retry: Any) -> dict[str, Any]:
    # The client of a cluster repeats commands by itself, too. In redis-py 5 this is not up to `retry`, and there it does not
    # understand over RESP3 that a key has moved.
    own = {"cluster_error_retry_attempts": 0, "protocol": 2} if redis.__version__.startswith("5.") else {}
    return _suited(own | options, retry)


def _suited(options: dict[str, Any], retry: Any) -> dict[str, Any]:
    suited = {
        "protocol": 3,
        "socket_timeout": SOCKET_TIMEOUT,
        "socket_connect_timeout": _CONNECTING,
        "retry": retry,
        # A worker opens as many connections as it has tasks that end at once, and so does a program with its sends. From
        # redis-py 8 on a pool refuses the 101st.
        "max_connections": _MANY,
    }
    return suited | options
