"""A queue on a manual clock whose replies are read as text; most tests of groups, records and schedules use it.

A message's payload is its id here unless a test needs another, so that orders read as lists of
names.
"""

from tests.harness.replies import Manual, Queue, as_map, msgs, number

# The time at which a scene's clock begins. Not zero, so that times before the start exist.
START = 1_000_000

STATES = ("delayed", "ready", "blocked", "retry", "running", "finished", "dead", "cancelled")


def text(value):
    """The reply with every byte string in it decoded."""
    if isinstance(value, bytes):
        return value.decode(errors="surrogateescape")
    if isinstance(value, list):
        return [text(one) for one in value]
    if isinstance(value, dict):
        return {text(k): text(v) for k, v in value.items()}
    return value


def record(reply):
    """One map of GET, LIST or PEEK with text, a float score and its headers as a dict."""
    row = text(as_map(reply))
    if row is None:
        return None
    row["score"] = number(row["score"])
    row["headers"] = as_map(row["headers"])
    return row


class Scene(Manual):
    """A CLOCK MANUAL queue that begins at START; options follow as in DQ.CREATE."""

    def __init__(self, client, key, *options, start=START):
        super().__init__(client, key, *options, start=start)

    @classmethod
    def over(cls, client, key) -> "Scene":
        """A Scene of a queue that exists already, or of a missing key."""
        scene = cls.__new__(cls)
        Queue.__init__(scene, client, key)
        return scene

    def add(self, id, *options):
        """SEND of a message whose payload is its id. Returns the id, or None if it is taken."""
        return text(self.do("SEND", id, "ID", id, *options))

    def fill(self, group, *ids):
        """Sends each id to the group, in this order."""
        for id in ids:
            assert self.add(id, "GROUP", group) == id

    def take(self, *options) -> list:
        """FETCH. Returns the delivered ids, in order."""
        return text([m.id for m in msgs(self.do("FETCH", *options))])

    def hold(self, *options) -> dict:
        """FETCH. Returns id -> message, in the order of delivery."""
        return {text(m.id): m for m in msgs(self.do("FETCH", *options))}

    def receipts(self, *options) -> list:
        """FETCH. Returns only the receipts."""
        return [m.receipt for m in msgs(self.do("FETCH", *options))]

    def drain(self, *options) -> list:
        """FETCH and ACK until nothing is delivered. Returns the ids in the order of delivery."""
        order = []
        while got := self.hold(*options):
            order += got
            assert self.ack(*[m.receipt for m in got.values()]) == len(got)
            assert len(order) < 100_000, "the queue never ends"
        return order

    def row(self, id):
        """GET as a dict."""
        return record(self.do("GET", id))

    def page(self, state, *options):
        """One LIST call. Returns the next cursor and the rows."""
        cursor, rows = self.do("LIST", state, *options)
        assert isinstance(cursor, bytes), f"a cursor is a string: {cursor!r}"
        return text(cursor), rows

    def rows(self, state, *options) -> list:
        """LIST from beginning to end. Returns the records."""
        return [record(one) for one in self._walk(state, *options)]

    def listed(self, state, *options) -> list:
        """LIST ... IDS from beginning to end. Returns the ids."""
        return text(self._walk(state, "IDS", *options))

    def _walk(self, state, *options):
        cursor, out, calls = "0", [], 0
        while True:
            cursor, rows = self.page(state, "CURSOR", cursor, *options)
            out += rows
            calls += 1
            if cursor == "0":
                return out
            assert calls < 100_000, "LIST never ends"

    def explain(self, id):
        return text(as_map(self.do("EXPLAIN", id)))

    def code(self, id):
        return self.explain(id)["code"]

    def groups(self, *options) -> dict:
        """GROUPS from beginning to end. Returns name -> map."""
        cursor, out = "0", {}
        while True:
            cursor, rows = self.do("GROUPS", "CURSOR", cursor, *options)
            for row in rows:
                row = text(as_map(row))
                assert row["group"] not in out, "a group came twice"
                out[row["group"]] = row
            if text(cursor) == "0":
                return out

    def counts(self) -> dict:
        """The states that have messages, with their counts in INFO (and LEN must agree)."""
        info = self.info()
        counts = {state: info[state] for state in STATES}
        for state, n in counts.items():
            assert self.len(state) == n, f"LEN and INFO differ on {state}"
        return {state: n for state, n in counts.items() if n}

    def consumers(self) -> dict:
        return {row["name"]: row for row in map(lambda m: text(as_map(m)), self.do("CONSUMERS"))}

    def schedules(self) -> dict:
        return {row["name"]: row for row in map(lambda m: text(as_map(m)), self.do("SCHEDULES"))}


def twin(scene, key) -> Scene:
    """Restores a DUMP of the queue under another name. Its manual clock goes with it."""
    dump = scene.client.execute_command("DUMP", scene.key)
    assert scene.client.execute_command("RESTORE", key, 0, dump) in (b"OK", True)
    return Scene.over(scene.client, key)


def assert_same_digest(client, *keys):
    """All these keys hold equal queues."""
    digests = [client.execute_command("DEBUG", "DIGEST-VALUE", key)[0] for key in keys]
    assert len(set(digests)) == 1, dict(zip(keys, digests))
