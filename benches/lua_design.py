"""A delay queue of Lua scripts over plain Redis types, in the layout of the Go library HDT3213/delayqueue.

It has a string per message, a sorted set of pending ids by due second, a list of ready ids, a sorted set of unacked
ids by lease end, and a hash of the retries left. The scripts are written for this benchmark and make fewer round trips
than the library, so the layout is measured at its best.
"""

from generator import Step

SEND = """
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[4])
redis.call('HSET', KEYS[3], ARGV[1], ARGV[5])
redis.call('ZADD', KEYS[2], ARGV[3], ARGV[1])
"""

PROMOTE = """
local due = redis.call('ZRANGEBYSCORE', KEYS[1], 0, ARGV[1])
for i = 1, #due, 4000 do
    redis.call('LPUSH', KEYS[2], unpack(due, i, math.min(i + 3999, #due)))
end
redis.call('ZREMRANGEBYSCORE', KEYS[1], 0, ARGV[1])
return #due
"""

FETCH = """
local id = redis.call('RPOP', KEYS[1])
if not id then return id end
redis.call('ZADD', KEYS[2], ARGV[1], id)
return id
"""

ACK = """
redis.call('ZREM', KEYS[1], ARGV[1])
redis.call('HDEL', KEYS[2], ARGV[1])
redis.call('DEL', KEYS[3])
"""

FAR = 9_999_999_999
"""A second that never comes: the end of every lease."""


class LuaDesign:
    """The scripts, loaded into one server. `send` and `fetch_ack` are steps for the generator."""

    def __init__(self, server):
        self._server = server
        send, fetch, ack, self._promote = (server.client.script_load(text) for text in (SEND, FETCH, ACK, PROMOTE))
        self.send = [
            Step(f"EVALSHA {send} 3 h:m:{{uuid}} h:pending h:retry {{uuid}} {{payload}} {{rand:1:1000}} 3600000 3")
        ]
        self.fetch_ack = [
            Step(f"EVALSHA {fetch} 2 h:ready h:unack {FAR}", "bulk"),
            Step("GET h:m:{taken}"),
            Step(f"EVALSHA {ack} 3 h:unack h:retry h:m:{{taken}} {{taken}}"),
        ]

    def promote(self):
        """Makes all pending messages ready in one call, as the library does at each tick. Returns how many."""
        return self._server.client.evalsha(self._promote, 2, "h:pending", "h:ready", FAR)
