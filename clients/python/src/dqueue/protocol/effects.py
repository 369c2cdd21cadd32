"""Effects: what an acknowledgement does to other Redis keys, in one step (APPLY)."""

from collections.abc import Mapping
from typing import Any

from dqueue.protocol.options import Millis, Word, millis

Value = str | bytes | int | float


class Effects:
    """Changes of Redis keys that go with an acknowledgement: all are done together with it, or none is.

    Nothing is written if the lease was lost. Use it as the argument `apply` of `Queue.ack`, `ack_send` and `fetch`, or as
    `message.effects` in a handler, whose worker then acks with it. A method adds one effect or condition and returns the
    object itself:

        queue.ack(message, apply=Effects().incrby("paid", 5).hset("order:7", "state", "paid").if_exists("order:7"))

    The server checks everything first. Its errors begin with the code (`CONDITION 1`, `WRONGTYPE 2`, `NOPERM 1`), and then
    nothing has changed.
    """

    def __init__(self) -> None:
        self._effects: list[list[Word]] = []
        self._conditions: list[list[Word]] = []
        self.applied: list[Any] | None = None
        """The replies of the plain commands, after the call; None if the lease was lost."""

    def __bool__(self) -> bool:
        return bool(self._effects or self._conditions)

    def _add(self, *words: Word) -> "Effects":
        self._effects.append(list(words))
        return self

    def _if(self, *words: Word) -> "Effects":
        self._conditions.append(list(words))
        return self

    def set(self, key: str, value: Value, *, px: Millis | None = None) -> "Effects":
        """SET, with `px` for as long as this."""
        return self._add("SET", key, value, *(() if px is None else ("PX", millis(px))))

    def delete(self, key: str) -> "Effects":
        """DEL."""
        return self._add("DEL", key)

    def incrby(self, key: str, by: int = 1) -> "Effects":
        """INCRBY."""
        return self._add("INCRBY", key, by)

    def hset(self, key: str, field: str, value: Value) -> "Effects":
        """HSET of one field."""
        return self._add("HSET", key, field, value)

    def hdel(self, key: str, field: str) -> "Effects":
        """HDEL of one field."""
        return self._add("HDEL", key, field)

    def hincrby(self, key: str, field: str, by: int = 1) -> "Effects":
        """HINCRBY."""
        return self._add("HINCRBY", key, field, by)

    def sadd(self, key: str, member: Value) -> "Effects":
        """SADD of one member."""
        return self._add("SADD", key, member)

    def srem(self, key: str, member: Value) -> "Effects":
        """SREM of one member."""
        return self._add("SREM", key, member)

    def zadd(self, key: str, score: float, member: Value) -> "Effects":
        """ZADD of one member."""
        return self._add("ZADD", key, score, member)

    def zincrby(self, key: str, by: float, member: Value) -> "Effects":
        """ZINCRBY."""
        return self._add("ZINCRBY", key, by, member)

    def zrem(self, key: str, member: Value) -> "Effects":
        """ZREM of one member."""
        return self._add("ZREM", key, member)

    def lpush(self, key: str, value: Value) -> "Effects":
        """LPUSH of one element."""
        return self._add("LPUSH", key, value)

    def rpush(self, key: str, value: Value) -> "Effects":
        """RPUSH of one element."""
        return self._add("RPUSH", key, value)

    def xadd(self, key: str, fields: Mapping[str, Value], *, maxlen: int | None = None) -> "Effects":
        """XADD of an entry, whose id the server gives. `maxlen` trims the stream to that many entries."""
        pairs = [word for pair in fields.items() for word in pair]
        return self._add("XADD", key, len(fields), *pairs, *(() if maxlen is None else ("MAXLEN", maxlen)))

    def pexpire(self, key: str, span: Millis) -> "Effects":
        """PEXPIRE."""
        return self._add("PEXPIRE", key, millis(span))

    def if_exists(self, key: str) -> "Effects":
        """Only if there is such a key."""
        return self._if("EXISTS", key)

    def if_missing(self, key: str) -> "Effects":
        """Only if there is no such key."""
        return self._if("MISSING", key)

    def if_equals(self, key: str, value: Value) -> "Effects":
        """Only if the key holds this string."""
        return self._if("EQUALS", key, value)

    def words(self) -> list[Word]:
        """Returns it as words of DQ.ACK, DQ.ACKSEND and DQ.FETCH."""
        words: list[Word] = []
        for option, parts in ("APPLY", self._effects), ("IF", self._conditions):
            if parts:
                words += [option, len(parts), *(word for part in parts for word in part)]
        return words
