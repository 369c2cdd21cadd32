"""Decides who has room for messages of a family, which nodes are asked for them, and which messages have arrived.

This decides for `NodeConnections`, which waits and calls around it, in threads or in tasks of asyncio.
"""

from collections import deque

from dqueue.protocol.message import Message

SLOW = 0.25
"""Seconds after which a node that does not answer no longer keeps a caller's room from the other nodes."""

LOOK_AGAIN = (0.0, 0.2, 1.0)
"""Seconds between checks of the cluster after a change, because some nodes learn of it later, by gossip."""


class Room:
    """Callers have room for the messages of one reply each. Node connections, each with a number, bring the messages.

    A waiting caller counts in one of three places: in `free`, among the reservations of the connections, or in `arrived`.
    """

    def __init__(self) -> None:
        self.free = 0
        """The number of callers that have room and for whom no node is asked."""
        self.arrived: deque[list[Message]] = deque()
        self.turns: deque[int] = deque()
        """The connections that are not in use. The first one is next."""
        self._reserved: dict[int, float] = {}
        """The connections that have reserved room, and since when."""

    def reserve(self, connection: int, now: float) -> bool:
        """Reserves room for a connection if it is next. Returns whether its node may be asked now."""
        self._expire(now)
        if self.free == 0 or self.turns[0] != connection:
            return False
        self.free -= 1
        self.turns.popleft()
        self._reserved[connection] = now
        return True

    def had_nothing(self, connection: int) -> None:
        """The node of a connection has no messages. Another one may be asked."""
        if self._reserved.pop(connection, None) is not None:
            self.free += 1

    def hand_over(self, connection: int, messages: list[Message]) -> bool:
        """Messages have arrived over a connection. Returns False if nobody has room for them."""
        if self._reserved.pop(connection, None) is None:
            if self.free > 0:
                self.free -= 1
            elif self._reserved:
                # The oldest reservation. If its connection brings messages, too, they find other room or none.
                del self._reserved[next(iter(self._reserved))]
            else:
                return False
        self.arrived.append(messages)
        return True

    def leave(self, now: float) -> bool:
        """A caller gives up. Returns False if it must stay a moment, because a node is asked for it."""
        self._expire(now)
        if self.free == 0:
            return False
        self.free -= 1
        return True

    def abandon(self) -> list[Message]:
        """A caller ends at once. Returns messages that had arrived for it."""
        if self.free > 0:
            self.free -= 1
        elif self._reserved:
            del self._reserved[next(iter(self._reserved))]
        elif self.arrived:
            return self.arrived.popleft()
        return []

    @property
    def is_asking(self) -> bool:
        """Whether any connection has reserved room, so that its node is asked now."""
        return bool(self._reserved)

    @property
    def has_callers(self) -> bool:
        """Whether there is a caller for whom no messages have arrived."""
        return self.free > 0 or self.is_asking

    def _expire(self, now: float) -> None:
        for connection in [one for one, since in self._reserved.items() if now - since >= SLOW]:
            self.had_nothing(connection)
