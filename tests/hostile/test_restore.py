"""RESTORE of payloads whose checksum and lengths are right but whose content is impossible.

test_input.py damages any bytes of a dump, so that most of its payloads are refused before they reach the queue. Here the
snapshot is taken out of the dump, its frames and numbers are damaged, and it is put back.
"""

import random

import pytest
import redis

from tests.harness.crc64 import sealed
from tests.harness.replies import digest
from tests.harness.server import now_ms
from tests.harness.traffic import Traffic, exercise, rich

# Layout of a dump: type and id of the module, blocks as strings, the last of them empty, an end; version of the RDB;
# checksum.
HEAD, STRING, END = 10, b"\x05", b"\x00"
ROUNDS = 400


def length(data: bytes, at: int):
    """A length of the RDB and where it ends."""
    kind = data[at] >> 6
    if kind == 0:
        return data[at] & 63, at + 1
    if kind == 1:
        return (data[at] & 63) << 8 | data[at + 1], at + 2
    assert data[at] == 0x80, "no plain length"
    return int.from_bytes(data[at + 1 : at + 5], "big"), at + 5


def unpacked(dump: bytes):
    """The head, the snapshot and the tail of a dump that is not compressed."""
    at, blocks = HEAD, []
    while data := dump[at : at + 1]:
        if data == END:
            return dump[:HEAD], b"".join(blocks), dump[at + 1 : -8]
        assert data == STRING
        size, at = length(dump, at + 1)
        blocks.append(dump[at : at + size])
        at += size
    raise AssertionError("a dump without an end")


def packed(head: bytes, blocks: list, tail: bytes, seal=sealed) -> bytes:
    strings = b"".join(STRING + b"\x80" + len(block).to_bytes(4, "big") + block for block in [*blocks, b""])
    return seal(head + strings + END + tail)


def number(data: bytes, at: int = 0):
    """A number of the snapshot, seven bits a byte, and where it ends."""
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 128:
            return value, at


def numeral(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def frames(snapshot: bytes) -> list:
    found, at = [], 0
    while at < len(snapshot):
        size, at = number(snapshot, at)
        found.append(snapshot[at : at + size])
        at += size
    return found


NUMBERS = [0, 1, 2, 127, 128, 2**31, 2**32 - 1, 2**53 - 1, 2**53, 2**63, 2**64 - 1]


def damaged(rng, all_frames: list) -> list:
    """The frames with a few of them doubled, dropped, swapped, or wrong in one number or byte."""
    out = list(all_frames)
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = rng.randrange(len(out))
        frame = bytearray(out[at])
        place = rng.randrange(len(frame)) if frame else 0
        match rng.randrange(8):
            case 0:
                out.insert(rng.randrange(len(out)), out[at])
            case 1 if len(out) > 1:
                del out[at]
            case 2:
                other = rng.randrange(len(out))
                out[at], out[other] = out[other], out[at]
            case 3 if frame:
                frame[place] = rng.randrange(256)
                out[at] = bytes(frame)
            case 4 if frame:
                frame[place] ^= 1 << rng.randrange(8)
                out[at] = bytes(frame)
            case 5 if frame:
                # Replaces the number at this position, if there is one.
                try:
                    _, end = number(frame, place)
                except IndexError:
                    continue
                value = rng.choice(NUMBERS + [now_ms(), now_ms() * 1000])
                out[at] = bytes(frame[:place]) + numeral(value) + bytes(frame[end:])
            case 6:
                out[at] = bytes(frame[:place])
            case 7:
                out[at] = bytes(frame) + rng.randbytes(rng.randrange(1, 9))
    return out


def cut(rng, snapshot: bytes) -> list:
    """The snapshot in blocks of a random size, which must make no difference."""
    size = rng.choice((1, 7, 100, 65536))
    return [snapshot[at : at + size] for at in range(0, len(snapshot), size)]


@pytest.fixture
def target(make_server):
    server = make_server(rdbcompression="no")
    return server, server.client()


def test_a_dump_unpacked_and_packed_again_is_the_same_queue(target):
    """Without this, all commands below might be refused for the wrong reason."""
    _, client = target
    rich(client, "q")
    head, snapshot, tail = unpacked(client.dump("q"))
    rng = random.Random(1)
    for _ in range(4):
        whole = b"".join(numeral(len(frame)) + frame for frame in frames(snapshot))
        assert whole == snapshot
        client.restore("again", 0, packed(head, cut(rng, whole), tail), replace=True)
        assert digest(client, "again") == digest(client, "q")


@pytest.mark.slow
@pytest.mark.parametrize("source", ["rich", "traffic", "server"])
def test_a_damaged_snapshot_is_refused_or_a_whole_queue(target, source):
    """A damaged snapshot is refused, or it is a queue that can be used, saved and loaded."""
    server, client = target
    if source == "traffic":
        Traffic(client, "q", 6, "CLOCK", "MANUAL", "DEDUP", 500, "RETAIN", 900).run(200)
    else:
        rich(client, "q", "SERVER" if source == "server" else "MANUAL")
    head, snapshot, tail = unpacked(client.dump("q"))
    rng, good = random.Random(source), frames(snapshot)
    refused = accepted = 0
    for seed in range(ROUNDS):
        whole = b"".join(numeral(len(frame)) + frame for frame in damaged(rng, good))
        payload = packed(head, cut(rng, whole), tail)
        try:
            client.restore("bad", 0, payload, replace=True)
        except redis.ResponseError as error:
            assert "Bad data format" in str(error), error
            refused += 1
            continue
        accepted += 1
        exercise(client, "bad", seed)
        if accepted % 20 == 0:
            with server.wire() as w:
                w.ok("MULTI")
                w.ok("DEBUG", "DIGEST-VALUE", "bad")
                w.ok("DEBUG", "RELOAD")
                w.ok("DEBUG", "DIGEST-VALUE", "bad")
                before, _, after = w.ok("EXEC")
                assert before == after, f"round {seed}"
    assert refused > ROUNDS // 5
    assert accepted > ROUNDS // 50
    assert server.alive()


def test_a_refused_restore_keeps_the_old_queue(target):
    """The old queue stays, also with REPLACE, if the new one cannot be read."""
    _, client = target
    rich(client, "q")
    before = digest(client, "q")
    head, snapshot, tail = unpacked(client.dump("q"))
    rng = random.Random(2)
    for size in rng.sample(range(len(snapshot)), 60):
        with pytest.raises(redis.ResponseError):
            client.restore("q", 0, packed(head, cut(rng, snapshot[:size]), tail), replace=True)
    assert digest(client, "q") == before
