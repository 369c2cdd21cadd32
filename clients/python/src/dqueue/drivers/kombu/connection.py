"""Connections that follow the keys of an application through a cluster."""

import sys
import time
from typing import Any

import redis
import redis.backoff
import redis.retry
from redis.exceptions import (
    AskError,
    ClusterDownError,
    ConnectionError,
    MovedError,
    ResponseError,
    TryAgainError,
)

from dqueue.working.lastwords import LastWords


class Untagged(ResponseError):
    """Reports that `global_keyprefix` is missing."""


class Place:
    """The place of the keys, as far as the transport knows. A transport and all of its connections share one.

    `prefix` is what all keys begin with.
    """

    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix
        self.address: tuple[str, int] | None = None
        """A node that another node has named. None means the node of the URL."""
        self.is_known = False
        """Whether a node has been asked."""


LAST = LastWords()
"""The time that is left for the last commands of this process. All of its connections share it."""

NONE = redis.retry.Retry(redis.backoff.NoBackoff(), 0)


def is_stopping() -> bool:
    """Returns whether Celery has told its worker to stop."""
    state = sys.modules.get("celery.worker.state")
    told = None if state is None else state.should_stop
    # `should_stop` is the exit status, such as 0.
    if told is None or told is False:
        return False
    LAST.begin()
    return True


class Hasty:
    """Part of a connection. If the worker is told to stop, the connection waits for a silent server no longer than
    LAST_WORDS.

    Celery's warm shutdown says goodbye to the server in several commands, each of which waits for its reply for ever.
    """

    _sock: Any
    socket_connect_timeout: float | None

    @property
    def retry(self) -> Any:
        """The retry by which redis-py repeats a command. Between its tries it sleeps for seconds."""
        return NONE if is_stopping() else self._retry

    @retry.setter
    def retry(self, retry: Any) -> None:
        self._retry = retry

    def connect(self) -> None:
        if is_stopping():
            self.socket_connect_timeout = LAST.left
        began = time.monotonic()
        try:
            super().connect()  # type: ignore[misc]
        except (ConnectionError, redis.exceptions.TimeoutError):
            LAST.waited(time.monotonic() - began)
            raise

    def read_response(self, *args: Any, **kwargs: Any) -> Any:
        if not is_stopping() or self._sock is None:
            return super().read_response(*args, **kwargs)  # type: ignore[misc]
        self._sock.settimeout(LAST.left)
        began = time.monotonic()
        try:
            reply = super().read_response(*args, **kwargs)  # type: ignore[misc]
        except (ConnectionError, redis.exceptions.TimeoutError):
            LAST.waited(time.monotonic() - began)
            raise
        LAST.answered()
        return reply


class Following(Hasty):
    """Part of a connection. If a node says that the keys are elsewhere, the connection is made again to that place.

    All keys of a transport lie in one hash slot (`global_keyprefix`), so one node has all of them. The first connection
    asks for it. If it changes later, the command that was refused has not been done, and the error is that of a lost
    connection.
    """

    host: str
    port: int
    disconnect: Any

    def __init__(self, *args: Any, place: Place | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._place = place or Place()
        self._first = (self.host, self.port)

    @property
    def _is_open(self) -> bool:
        # The property is_connected came with redis-py 8.
        return self._sock is not None

    def connect(self) -> None:
        """Connects to the node that was named last, or if it is gone, to the node of the URL."""
        if self._is_open and self._place.address not in (None, (self.host, self.port)):
            # The connection was made before the keys have moved.
            self.disconnect()
        if self._is_open:
            super().connect()
            return
        if self._place.address is not None:
            self.host, self.port = self._place.address
            try:
                super().connect()
                return
            except (ConnectionError, redis.exceptions.TimeoutError):
                self._place.address = None
                self._place.is_known = False
        self.host, self.port = self._first
        super().connect()
        if not self._place.is_known:
            self._ask()

    def _ask(self) -> None:
        self._place.is_known = True
        connection: Any = self
        connection.send_command("EXISTS", self._place.prefix)
        try:
            connection.read_response()
        except ConnectionError:
            if self._place.address is None:
                raise
            self.connect()
        except ResponseError as error:
            # Without the right to ask, the first command finds out.
            if isinstance(error, Untagged):
                raise

    def read_response(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().read_response(*args, **kwargs)
        except MovedError as error:
            if "{" not in self._place.prefix:
                raise Untagged(
                    "this is a node of a cluster, where all keys of an application must be in one hash slot: set the "
                    'transport option global_keyprefix to a hash tag, such as "{shop}:"'
                ) from error
            self._place.address = (error.host or self.host, error.port)
            raise self._gone(error) from error
        except (AskError, ClusterDownError, TryAgainError) as error:
            # The slot is moving, or the cluster elects a primary: a moment later one node has the keys again.
            raise self._gone(error) from error

    def _gone(self, error: Exception) -> ConnectionError:
        self.disconnect()
        return ConnectionError(f"the keys are at another node: {error}")


class FollowingConnection(Following, redis.Connection):
    """A connection over TCP."""


class FollowingSSLConnection(Following, redis.SSLConnection):
    """A connection over TLS."""
