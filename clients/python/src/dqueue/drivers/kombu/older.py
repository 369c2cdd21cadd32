"""Features of kombu's Redis transport since 5.7, for kombu 5.4 to 5.6: queues that expire (x-expires), and an event
loop that goes on after a lost connection."""

import sys
from collections.abc import Iterable
from typing import Any

from kombu.transport import redis as kombu_redis
from kombu.transport.virtual.base import Channel as VirtualChannel

FORGETS_TASKS_BEFORE = (5, 6)
"""The release from which on Celery knows the tasks that run when it connects again. Older ones read no result of theirs."""

IS_OLDER = not hasattr(kombu_redis.Channel, "maybe_refresh_binding_expiry")


class Older(kombu_redis.Channel):
    """A Redis channel of any of these releases."""

    brpop_timeout: float = getattr(kombu_redis.Channel, "brpop_timeout", 1)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._expires: dict[str, int] = {}
        super().__init__(*args, **kwargs)

    if IS_OLDER:
        # The bindings of queues that do not expire are not stored separately.
        keyprefix_binding_permanent = kombu_redis.Channel.keyprefix_queue

        def _new_queue(self, queue: str, auto_delete: bool = False, **kwargs: Any) -> None:
            super()._new_queue(queue, auto_delete, **kwargs)
            expires = (kwargs.get("arguments") or {}).get("x-expires")
            if expires is None:
                self._expires.pop(queue, None)
            else:
                self._expires[queue] = int(expires)

        def prepare_queue_arguments(self, arguments: dict[str, Any], **options: Any) -> dict[str, Any]:
            """Returns the arguments of a queue, with `expires` (s) as x-expires (ms)."""
            prepared = dict(VirtualChannel.prepare_queue_arguments(self, arguments, **options) or {})
            if options.get("expires") is not None:
                prepared["x-expires"] = int(options["expires"] * 1000)
            return prepared

        def maybe_refresh_binding_expiry(self) -> None:
            """The bindings of queues of dq do not expire."""

        def _flush_brpop_reauth(self) -> None:
            """The connections of dq do not log in anew while they wait."""


def forgets_running_tasks() -> bool:
    """Whether the program is a Celery that forgets the tasks that run when it loses its connection, and never acks them."""
    release = getattr(sys.modules.get("celery"), "VERSION", FORGETS_TASKS_BEFORE)
    return tuple(release[:2]) < FORGETS_TASKS_BEFORE


def forget_reserved_tasks(messages: Iterable[Any]) -> None:
    """Removes the tasks of these messages that have not begun from Celery's table of requests, as Celery itself does since 5.7.

    Celery 5.6 forgets them when it loses its connection, too, but its table goes on referring to them. So their end could
    not be seen, and their messages would be held until the worker ends.
    """
    state = sys.modules.get("celery.worker.state")
    if state is None:
        return
    held = {id(message) for message in messages}
    for name, request in [*state.requests.items()]:
        if request not in state.active_requests and id(getattr(request, "_message", None)) in held:
            state.requests.pop(name, None)


def forget_lost_connections(cycle: kombu_redis.MultiChannelPoller, loop: Any) -> None:
    """Makes the event loop forget a connection that has ended, and keep all others.

    Before 5.7 it would stop polling for all connections, and hear nothing of the one that is made anew.
    """

    def forget(connection: Any) -> None:
        for ident in [ident for ident in cycle._chan_to_sock if ident[1].connection is connection]:
            del cycle._chan_to_sock[ident]
            reader = (ident[0], ident[2])
            for descriptor in [fd for fd, known in cycle._fd_to_chan.items() if known == reader]:
                loop.remove(descriptor)
                del cycle._fd_to_chan[descriptor]

    cycle._on_connection_disconnect = forget
