"""Gateways and the server of `dq sqs` are killed while clients send to a FIFO queue and receive from it.

    python -m tests.sqs.faults [--faults N] [--seed N]

The log of the server is written with `appendfsync always`. In the end each message that was confirmed has been received, in
the order of its group, and none was added twice, although clients repeat what was not answered.
"""

import argparse
import asyncio
import collections
import random
import sys
import time

from tests.harness.cli import Cli, build
from tests.harness.server import Server, free_port
from tests.harness.sqs import Gateway
from tests.sqs.figures import Connection

QUEUE = "faults.fifo"
GROUPS = 8
PAUSE = 0.3


class Run:
    """What clients know: what was confirmed, and what was received first and by which ids."""

    def __init__(self, urls):
        self.urls = urls
        self.confirmed = collections.Counter()
        self.first = collections.defaultdict(list)
        self.ids = collections.defaultdict(set)
        self.sending = True

    async def call(self, action, **params):
        """One try at one of the gateways. None if it fails."""
        try:
            async with asyncio.timeout(10), Connection(random.choice(self.urls)) as link:
                return await link.call(action, **params)
        except (OSError, AssertionError, TimeoutError, EOFError):
            await asyncio.sleep(0.05)

    async def until_done(self, action, **params):
        while (answer := await self.call(action, **params)) is None:
            pass
        return answer

    async def send(self, group):
        number = 0
        while self.sending:
            name = f"{group} {number}"
            await self.until_done(
                "SendMessage",
                QueueUrl=QUEUE,
                MessageBody=name,
                MessageGroupId=str(group),
                MessageDeduplicationId=name.replace(" ", "-"),
            )
            number += 1
            self.confirmed[group] = number

    def is_done(self):
        return not self.sending and all(len(self.first[group]) >= self.confirmed[group] for group in range(GROUPS))

    async def receive(self):
        while not self.is_done():
            answer = await self.call("ReceiveMessage", QueueUrl=QUEUE, MaxNumberOfMessages=10, WaitTimeSeconds=1)
            messages = (answer or {}).get("Messages", [])
            for message in messages:
                group, number = map(int, message["Body"].split())
                if message["Body"] not in self.ids:
                    self.first[group].append(number)
                self.ids[message["Body"]].add(message["MessageId"])
            if messages:
                entries = [{"Id": str(n), "ReceiptHandle": message["ReceiptHandle"]} for n, message in enumerate(messages)]
                await self.call("DeleteMessageBatch", QueueUrl=QUEUE, Entries=entries)

    def wrong(self):
        """What was promised and is not so."""
        for group, count in self.confirmed.items():
            if lost := set(range(count)) - set(self.first[group]):
                yield f"group {group}: {len(lost)} confirmed messages were lost: {sorted(lost)[:5]}"
            if self.first[group] != sorted(self.first[group]):
                yield f"group {group}: not in order"
        for name, ids in self.ids.items():
            if len(ids) > 1:
                yield f"{name}: added {len(ids)} times"


async def harm(run, server, gateways, faults, chance):
    """Kills and starts again."""
    for number in range(faults):
        await asyncio.sleep(chance.uniform(0, 2 * PAUSE))
        if chance.random() < 0.5:
            await asyncio.to_thread(lambda: (server.kill9(), server.start()))
        else:
            gateway = chance.choice(gateways)
            await asyncio.to_thread(lambda: (gateway.__exit__(), gateway.__enter__()))
        if (number + 1) % 50 == 0:
            print(f"{number + 1} faults, {sum(run.confirmed.values())} messages confirmed", flush=True)
    run.sending = False


async def whole(server, gateways, faults, chance):
    run = Run([gateway.url for gateway in gateways])
    attributes = {"FifoQueue": "true", "VisibilityTimeout": "2"}
    await run.until_done("CreateQueue", QueueName=QUEUE, Attributes=attributes)
    clients = [*(run.send(group) for group in range(GROUPS)), *(run.receive() for _ in range(4))]
    async with asyncio.timeout(60 + faults * 10):
        await asyncio.gather(harm(run, server, gateways, faults, chance), *clients)
    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faults", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    args = parser.parse_args()
    print(f"seed {args.seed}", flush=True)
    server = Server(appendonly="yes", appendfsync="always").start()
    cli = Cli(build(), f"redis://127.0.0.1:{server.port}")
    gateways = [Gateway(cli, listen=f"127.0.0.1:{free_port()}").__enter__() for _ in range(2)]
    try:
        run = asyncio.run(whole(server, gateways, args.faults, random.Random(args.seed)))
    finally:
        for gateway in gateways:
            gateway.__exit__()
        server.close(check_log=False)
    wrong = list(run.wrong())
    print(*wrong, sep="\n")
    print(f"{args.faults} faults, {sum(run.confirmed.values())} messages confirmed, {len(wrong)} promises broken")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
