"""One reply, cut before each of its bytes in turn: the same token gives the same delivery until it has come
completely.
"""

import pytest

from tests.checker.link import Link, Unknown
from tests.harness.lossy import CuttingProxy
from tests.harness.replies import Queue
from tests.harness.wire import encode

# Each receipt has as many digits as any other, so that all replies to a call are of one length.
LEASE = 600_000


@pytest.fixture
def proxy(server):
    proxy = CuttingProxy(server.port, b"FETCH")
    yield proxy
    proxy.close()


@pytest.fixture
def q(server):
    q = Queue(server.client(), "cut:{0}")
    q.do("CREATE", "RETAIN", LEASE, "LEASE", LEASE)
    return q


def until_whole(proxy, *call):
    """Sends the same bytes until there is an answer. Returns it, and how many answers were lost."""
    link, lost = Link([proxy.port]), 0
    while True:
        try:
            return link.call(*call), lost
        except Unknown:
            lost += 1


def resp2(reply) -> bytes:
    """The bytes of a reply of arrays, integers and strings."""
    if isinstance(reply, list):
        return b"*%d\r\n%s" % (len(reply), b"".join(map(resp2, reply)))
    return b":%d\r\n" % reply if isinstance(reply, int) else encode([reply]).partition(b"\r\n")[2]


def plain(q):
    q.send("x" * 50, "ID", "m")


def of_one_group(q):
    for n in range(3):
        q.send("x" * 50, "ID", f"m{n}", "GROUP", "g")


def handed_on(q):
    q.send("x", "ID", "first")
    q.do("ACKSEND", q.one().receipt, "NEXT", q.key, "x" * 50, "ID", "m")


def released_by_its_batch(q):
    q.send("x", "ID", "member", "BATCH", "b")
    q.send("x" * 50, "ID", "m", "AFTER", "b")
    q.ack(q.one().receipt)


def paused_before(q):
    q.send("x" * 50, "ID", "m", "GROUP", "g")
    q.nack(q.one().receipt, "SILENT", "PAUSE", "GROUP", 1)


FETCH = ("DQ.FETCH", "cut:{0}")
CALLS = {
    "fetch": FETCH,
    "mfetch": ("DQ.MFETCH", 2, "other:{0}", "cut:{0}"),
    "nfetch": ("DQ.NFETCH", "cut"),
    "bound": (*FETCH, "BIND", "GRACE", LEASE),
}


@pytest.mark.parametrize("prepare", [plain, of_one_group, handed_on, released_by_its_batch, paused_before])
@pytest.mark.parametrize("call", CALLS)
def test_a_reply_that_is_cut_at_every_byte_costs_no_attempt(proxy, q, prepare, call):
    prepare(q)
    options = ("COUNT", 3, "PERGROUP", 3, "BLOCK", 1000, "CONSUMER", "w", "TOKEN", "t")
    reply, lost = until_whole(proxy, *CALLS[call], *options)
    # There was one cut before each byte of the reply.
    assert lost == proxy.cuts == len(resp2(reply))
    messages = reply if call in ("fetch", "bound") else reply[1]
    assert [attempt for _, _, attempt, _ in messages] == [1] * len(messages)
    info = q.info()
    # The deliveries of `prepare` are added.
    assert info["delivered"] == len(messages) + info["acked"] + info["nacked"]
    assert info["timeouts"] == 0
    assert q.ack(*(receipt for _, receipt, _, _ in messages)) == len(messages)
    assert all(q.get(id)["attempt"] == 1 for id, *_ in messages)


def test_without_a_token_each_cut_leases_another_message(proxy, q):
    q.do("MSEND", 30, *range(30))
    _, lost = until_whole(proxy, *FETCH, "COUNT", 1)
    assert q.len("running") == min(30, lost + 1) > 1
