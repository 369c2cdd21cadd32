"""Who has room for messages of a family, which nodes are asked for them, and what has come.

This is the part of an intake that knows no threads, tasks and connections. `dqueue.intake` and `dqueue.asyncio.intake`
wait and call around it.
"""

from collections import deque

from dqueue.protocol.message import Message

SLOW = 0.25
"""Seconds after which a node that does not answer no longer keeps a caller's room from the other nodes."""

LOOK_AGAIN = (0.0, 0.2, 1.0)
"""Seconds between looks at the cluster after a change, because some nodes learn of it later, by gossip."""


class Desk:
    """Callers bring room for the messages of one reply. Lines, one for each node, bring the messages.

    Each waiting caller is in one of three places: in `room`, in the note that a line is asked for it, or in `came`.
    """

    def __init__(self) -> None:
        self.room = 0
        """The callers that have room and for whom no line is asked."""
        self.came: deque[list[Message]] = deque()
        self.turns: deque[int] = deque()
        """The lines that are not in use. The first one is next."""
        self._asked: dict[int, float] = {}

    def claim(self, line: int, now: float) -> bool:
        """Takes room for a line if it is the line's turn. Returns whether it may be asked now."""
        self._lapse(now)
        if self.room == 0 or self.turns[0] != line:
            return False
        self.room -= 1
        self.turns.popleft()
        self._asked[line] = now
        return True

    def had_nothing(self, line: int) -> None:
        """A line that was asked has no messages: others may be asked."""
        if self._asked.pop(line, None) is not None:
            self.room += 1

    def hand_over(self, line: int, messages: list[Message]) -> bool:
        """Messages of a line have come. Returns False if nobody has room for them."""
        if self._asked.pop(line, None) is None:
            if self.room > 0:
                self.room -= 1
            elif self._asked:
                # The one that has been asked for the longest. If it has messages, too, they find other room or none.
                del self._asked[next(iter(self._asked))]
            else:
                return False
        self.came.append(messages)
        return True

    def leave(self, now: float) -> bool:
        """A caller gives up. Returns False if it must stay a moment, because a line is asked for it."""
        self._lapse(now)
        if self.room == 0:
            return False
        self.room -= 1
        return True

    def abandon(self) -> list[Message]:
        """A caller ends at once. Returns messages that had come for it."""
        if self.room > 0:
            self.room -= 1
        elif self._asked:
            del self._asked[next(iter(self._asked))]
        elif self.came:
            return self.came.popleft()
        return []

    @property
    def is_asking(self) -> bool:
        """Whether any line is asked now."""
        return bool(self._asked)

    @property
    def has_callers(self) -> bool:
        """Whether any caller waits for whom nothing has come."""
        return self.room > 0 or self.is_asking

    def _lapse(self, now: float) -> None:
        for line in [line for line, since in self._asked.items() if now - since >= SLOW]:
            self.had_nothing(line)
