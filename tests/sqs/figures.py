"""Figures of `dq sqs`, with server, gateway and clients on this machine.

    python -m tests.sqs.figures [--seconds N] [--clients N] [--polls N]

Messages a second in batches of 10, sent, and received and deleted; the memory of an idle gateway; what many long polls at
once take, and how soon one of them has a message. DQ_CLI names the program: a release build, or the figures mean nothing.
"""

import argparse
import asyncio
import json
import multiprocessing
import resource
import time
from pathlib import Path

from tests.harness.cli import Cli, build
from tests.harness.server import Server
from tests.harness.sqs import Gateway

BODY = "x" * 100


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
        body = json.dumps(params).encode()
        head = f"POST / HTTP/1.1\r\nHost: x\r\nX-Amz-Target: AmazonSQS.{action}\r\nContent-Length: {len(body)}\r\n\r\n"
        self.writer.write(head.encode() + body)
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        answer = json.loads(await self.reader.readexactly(length) or b"{}")
        assert b" 200 " in head.split(b"\r\n")[0], answer
        return answer


async def send(link, queue):
    entries = [{"Id": str(i), "MessageBody": BODY} for i in range(10)]
    await link.call("SendMessageBatch", QueueUrl=queue, Entries=entries)
    return 10


async def take(link, queue):
    answer = await link.call("ReceiveMessage", QueueUrl=queue, MaxNumberOfMessages=10)
    messages = answer.get("Messages", [])
    entries = [{"Id": str(i), "ReceiptHandle": one["ReceiptHandle"]} for i, one in enumerate(messages)]
    if entries:
        await link.call("DeleteMessageBatch", QueueUrl=queue, Entries=entries)
    return len(entries)


def work(url, queue, what, seconds, links, out):
    """A process of clients."""

    async def client(until):
        count = 0
        async with Connection(url) as link:
            while time.monotonic() < until:
                count += await what(link, queue)
        return count

    async def all_of_them():
        until = time.monotonic() + seconds
        out.put(sum(await asyncio.gather(*(client(until) for _ in range(links)))))

    asyncio.run(all_of_them())


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
    calls = [asyncio.ensure_future(link.call("ReceiveMessage", QueueUrl=queue, WaitTimeSeconds=20)) for link in links]
    await asyncio.sleep(5)
    used, times = memory(gateway.process.pid), []
    async with Connection(gateway.url) as sender:
        for _ in range(100):
            begin = time.monotonic()
            await sender.call("SendMessage", QueueUrl=queue, MessageBody=BODY)
            done, calls = await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
            times.append((time.monotonic() - begin) * 1000)
            calls = list(calls)
            assert all(task.result().get("Messages") for task in done)
    for link in links:
        link.writer.close()
    for task in calls:
        task.cancel()
    await asyncio.gather(*calls, return_exceptions=True)
    times.sort()
    return used, times[50], times[98]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--polls", type=int, default=10_000)
    args = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    server = Server().start()
    try:
        with Gateway(Cli(build(), f"redis://127.0.0.1:{server.port}")) as gateway:
            time.sleep(2)
            print(f"idle gateway                      {memory(gateway.process.pid):8.1f} MB")
            for name in ["rates", "polls"]:
                asyncio.run(create(gateway.url, name))
            print(f"sent, batches of 10               {rate(gateway.url, 'rates', send, args.seconds, args.clients):8.0f} /s")
            print(f"received and deleted              {rate(gateway.url, 'rates', take, args.seconds, args.clients):8.0f} /s")
            used, half, most = asyncio.run(polls(gateway, "polls", args.polls))
            print(f"{args.polls} long polls                 {used:8.1f} MB")
            print(f"from a send to the answer, p50    {half:8.2f} ms")
            print(f"                           p99    {most:8.2f} ms")
    finally:
        server.close()


async def create(url, name):
    async with Connection(url) as link:
        await link.call("CreateQueue", QueueName=name)


if __name__ == "__main__":
    main()
