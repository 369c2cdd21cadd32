"""When an ack may wait for others, so that one command settles several messages."""

from collections import deque

PATIENCE = 0.001
"""Seconds that an ack waits for others at most."""

FAST = 0.0007
"""Seconds from one ack to the next below which they come fast."""

LAST = 8
"""How many acks in a row must have come fast."""


class AckPace:
    """Knows how fast a worker acks. Where acks come more than FAST apart, none of them waits.

    So only acks of very short tasks wait, and only as long as they are not in vain: while an ack waits, a worker without
    other messages has less to do. A message whose worker is killed in this time runs again, as it does if the
    worker is killed just before its ack.
    """

    def __init__(self) -> None:
        self._times: deque[float] = deque(maxlen=LAST)

    def may_wait(self, now: float, waiting: int, window: int) -> bool:
        """Notes an ack, and returns whether it may wait for the next one.

        `now` is a monotonic time in seconds. `waiting` is the number of acks that wait, with this one, and `window` that
        of the messages that the worker may hold: acks never wait for more than half of them, because the worker has work
        to do while the others are fetched.
        """
        self._times.append(now)
        is_fast = len(self._times) == LAST and now - self._times[0] < (LAST - 1) * FAST
        return is_fast and waiting < min(window, max(2, window // 2))

    def has_waited(self, waiting: int) -> None:
        """Notes how many acks there were at the end of PATIENCE. After one that was alone, the next LAST - 1 do not wait."""
        if waiting == 1:
            self._times.clear()
