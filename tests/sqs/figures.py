"""Figures of `dq sqs`, with server, gateway and clients on this machine.

    python -m tests.sqs.figures [--seconds N] [--clients N] [--polls N] [--log everysec|always] [--durable] [--moto]

Messages a second in batches of 10, sent, and received and deleted; the time of a SendMessage of one client; the memory of an
idle gateway, and with many long polls at once; and how soon one of them has a message. DQ_CLI names the program, and
DQ_MODULE the module: release builds, or the figures mean nothing.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import re
import resource
import select
import socket
import subprocess
import time
from pathlib import Path

from tests.harness.cli import Cli, build
from tests.harness.server import Server, free_port, wait_for
from tests.harness.sqs import Gateway
from tests.sqs.suites.__main__ import Moto

BODY = "x" * 100
HANDLE = re.compile(rb'"ReceiptHandle": ?"([^"]*)"')
LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)


class Connection:
    """A client of the JSON protocol that costs little itself."""

    def __init__(self, url):
        self.host, self.port = url.split("/")[-1].split(":")

    async def __aenter__(self):
        self.reader, self.writer = await asyncio.open_connection(self.host, int(self.port))
        return self

    async def __aexit__(self, *_):
        self.writer.close()

    async def call(self, action, **params):
        self.writer.write(request(action, **params))
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        answer = json.loads(await self.reader.readexactly(length) or b"{}")
        assert b" 200 " in head.split(b"\r\n")[0], answer
        if b"connection: close" in head.lower():
            self.writer.close()
            await self.__aenter__()
        return answer


def request(action, **params) -> bytes:
    """A request of the JSON protocol."""
    body = json.dumps(params)
    # moto's server sends a request to the service that its signature names.
    return (
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-amz-json-1.0\r\n"
        "Authorization: AWS4-HMAC-SHA256 Credential=k/20260101/us-east-1/sqs/aws4_request, SignedHeaders=host, Signature=x\r\n"
        f"X-Amz-Target: AmazonSQS.{action}\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    ).encode()


def send(queue):
    """Yields requests that send, each with the number of messages that were done before it."""
    entries = [{"Id": str(i), "MessageBody": BODY} for i in range(10)]
    batch, count = request("SendMessageBatch", QueueUrl=queue, Entries=entries), 0
    while True:
        yield batch, count
        count = 10


def take(queue):
    """The same for messages that are received and deleted. The caller sends each answer back."""
    receive, count = request("ReceiveMessage", QueueUrl=queue, MaxNumberOfMessages=10), 0
    while True:
        handles = HANDLE.findall((yield receive, count))
        entries = [{"Id": str(i), "ReceiptHandle": one.decode()} for i, one in enumerate(handles)]
        if entries:
            yield request("DeleteMessageBatch", QueueUrl=queue, Entries=entries), 0
        count = len(entries)


class Link:
    """A connection of a client that has one request under way. It is to cost little beside the gateway."""

    def __init__(self, url, requests, poll, links):
        self.host, self.port = url.split("/")[-1].split(":")
        self.requests, self.poll, self.links = requests, poll, links
        self.connect()
        self.ask(None)

    def connect(self):
        self.socket = socket.create_connection((self.host, int(self.port)))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.poll.register(self.socket, select.EPOLLIN)
        self.links[self.socket.fileno()] = self

    def ask(self, answer) -> int:
        what, count = self.requests.send(answer)
        self.got = b""
        self.socket.sendall(what)
        return count

    def read(self) -> int:
        """Reads what has come, and goes on if it is an answer. Returns the messages that are done by it."""
        self.got += self.socket.recv(1 << 16)
        head, end, body = self.got.partition(b"\r\n\r\n")
        found = LENGTH.search(head)
        if not end or len(body) < int(found[1]):
            return 0
        assert b" 200 " in head[:20] and b'"SenderFault"' not in body, self.got
        if b"connection: close" in head.lower():
            self.socket.close()
            self.connect()
        return self.ask(body)


def work(url, queue, what, seconds, count, out):
    """A process of clients."""
    poll, links, done, until = select.epoll(), {}, 0, time.monotonic() + seconds
    for _ in range(count):
        Link(url, what(queue), poll, links)
    while time.monotonic() < until:
        for number, _ in poll.poll(1):
            done += links[number].read()
    out.put(done)


async def one_by_one(url, queue) -> tuple:
    """The time of a SendMessage of one client, in ms: the median, and that of the slowest but one of 200."""
    times = []
    async with Connection(url) as link:
        for _ in range(200):
            begin = time.monotonic()
            await link.call("SendMessage", QueueUrl=queue, MessageBody=BODY)
            times.append((time.monotonic() - begin) * 1000)
    times.sort()
    return times[100], times[198]


def processor(pid) -> float:
    """The processor time of a process so far, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rates(name, url, args, *pids):
    """Messages a second, and the processor time of a message in each of these processes, which load changes little."""
    queue = asyncio.run(create(url, "rates"))
    for words, what in [("sent, batches of 10", send), ("received and deleted", take)]:
        before = [processor(pid) for pid in pids]
        found = rate(url, queue, what, args.seconds, args.clients)
        used = [(processor(pid) - was) / max(1, found * args.seconds) * 1e6 for pid, was in zip(pids, before)]
        print(f"{name}, {words:28}{found:10.0f} /s, {' + '.join(f'{one:.1f}' for one in used)} us each", flush=True)
    half, most = asyncio.run(one_by_one(url, queue))
    print(f"{name}, SendMessage alone{half:16.2f} ms, p99 {most:.2f} ms", flush=True)


def moto(args):
    """The same of moto's server, a fake that keeps its messages in memory."""
    port = free_port()
    server = subprocess.Popen([Moto().venv() / "bin/moto_server", "-p", str(port)], stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: not socket.socket().connect_ex(("127.0.0.1", port)), 30, "moto's server")
        # It does one request at a time, and each takes the longer the more messages it has.
        args.clients = 2
        rates("moto", f"http://127.0.0.1:{port}", args, server.pid)
    finally:
        server.kill()
        server.wait()


def rate(url, queue, what, seconds, clients) -> float:
    out = multiprocessing.Queue()
    workers = [multiprocessing.Process(target=work, args=(url, queue, what, seconds, clients // 2, out)) for _ in range(2)]
    for worker in workers:
        worker.start()
    count = sum(out.get() for _ in workers)
    for worker in workers:
        worker.join()
    return count / seconds


def memory(pid) -> float:
    """Resident memory, in MB."""
    (line,) = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS")]
    return int(line.split()[1]) / 1024


async def polls(gateway, queue, count):
    """Memory with so many long polls, and the time from a send to the answer, in ms."""
    links = [await Connection(gateway.url).__aenter__() for _ in range(count)]
    got = asyncio.Queue()

    async def poll(link):
        if (await link.call("ReceiveMessage", QueueUrl=queue, WaitTimeSeconds=20)).get("Messages"):
            got.put_nowait(time.monotonic())

    calls = [asyncio.ensure_future(poll(link)) for link in links]
    await asyncio.sleep(5)
    used, times = memory(gateway.process.pid), []
    async with Connection(gateway.url) as sender:
        for _ in range(100):
            begin = time.monotonic()
            await sender.call("SendMessage", QueueUrl=queue, MessageBody=BODY)
            times.append((await got.get() - begin) * 1000)
    for task in calls:
        task.cancel()
    await asyncio.gather(*calls, return_exceptions=True)
    for link in links:
        link.writer.close()
    times.sort()
    return used, times[50], times[98]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--polls", type=int, default=10_000)
    parser.add_argument("--log", choices=["everysec", "always"], help="appendfsync of the server's log; without, it has none")
    parser.add_argument("--durable", action="store_true")
    parser.add_argument("--moto", action="store_true", help="measure moto's server, too")
    args = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    server = Server(**({"appendonly": "yes", "appendfsync": args.log} if args.log else {})).start()
    options = ["--durable"] if args.durable else []
    try:
        with Gateway(Cli(build(), f"redis://127.0.0.1:{server.port}"), *options) as gateway:
            time.sleep(2)
            print(f"idle gateway                      {memory(gateway.process.pid):8.1f} MB")
            rates("dq sqs", gateway.url, args, gateway.process.pid, server.pid)
            if args.polls:
                asyncio.run(create(gateway.url, "polls"))
                used, half, most = asyncio.run(polls(gateway, "polls", args.polls))
                print(f"{args.polls} long polls                 {used:8.1f} MB")
                print(f"from a send to the answer, p50    {half:8.2f} ms")
                print(f"                           p99    {most:8.2f} ms")
    finally:
        server.close()
    if args.moto:
        moto(args)


async def create(url, name) -> str:
    async with Connection(url) as link:
        return (await link.call("CreateQueue", QueueName=name))["QueueUrl"]


if __name__ == "__main__":
    main()
