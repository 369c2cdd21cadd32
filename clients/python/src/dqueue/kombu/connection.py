"""Connections that follow the keys of an application through a cluster."""

from typing import Any

import redis
from redis.exceptions import (
    AskError,
    ClusterDownError,
    ConnectionError,
    MovedError,
    ResponseError,
    TryAgainError,
)


class Untagged(ResponseError):
    """Says that `global_keyprefix` is missing."""


class Place:
    """Where the keys are, as far as the transport knows. A transport and all of its connections share one.

    `prefix` is what all keys begin with.
    """

    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix
        self.address: tuple[str, int] | None = None
        """A node that another one has named. None: that of the URL."""
        self.is_known = False
        """Whether a node has been asked."""


class Following:
    """Part of a connection. Where a node says that the keys are elsewhere, the connection is made anew there.

    All keys of a transport lie in one hash slot (`global_keyprefix`), so one node has all of them. The first connection
    asks for it. If it changes later, the command that was refused has not been done, and the error is that of a lost
    connection.
    """

    host: str
    port: int
    _sock: Any
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
        """Connects to the node that was named last, and if that is gone, to the one of the URL."""
        if self._is_open and self._place.address not in (None, (self.host, self.port)):
            # It was made before the keys have moved.
            self.disconnect()
        if self._is_open:
            super().connect()  # type: ignore[misc]
            return
        if self._place.address is not None:
            self.host, self.port = self._place.address
            try:
                super().connect()  # type: ignore[misc]
                return
            except (ConnectionError, redis.exceptions.TimeoutError):
                self._place.address = None
                self._place.is_known = False
        self.host, self.port = self._first
        super().connect()  # type: ignore[misc]
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
            return super().read_response(*args, **kwargs)  # type: ignore[misc]
        except MovedError as error:
            if "{" not in self._place.prefix:
                raise Untagged(
                    "this is a node of a cluster, where all keys of an application must be in one hash slot: set the "
                    'transport option global_keyprefix to a hash tag, such as "{shop}:"'
                ) from error
            self._place.address = (error.host or self.host, error.port)
            raise self._gone(error) from error
        except (AskError, ClusterDownError, TryAgainError) as error:
            # The slot is on its way, or the cluster elects: a moment later there is one node again that has the keys.
            raise self._gone(error) from error

    def _gone(self, error: Exception) -> ConnectionError:
        self.disconnect()
        return ConnectionError(f"the keys are at another node: {error}")


class FollowingConnection(Following, redis.Connection):
    """A connection over TCP."""


class FollowingSSLConnection(Following, redis.SSLConnection):
    """A connection over TLS."""
