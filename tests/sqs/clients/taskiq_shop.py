"""An application of taskiq. ENDPOINT and QUEUE have the queue, FILE takes what is done."""

import asyncio
import os

from taskiq_aio_sqs import SQSBroker

broker = SQSBroker(
    endpoint_url=os.environ["ENDPOINT"],
    sqs_queue_name=os.environ["QUEUE"],
    region_name="us-east-1",
    aws_access_key_id="key",
    aws_secret_access_key="secret",
    wait_time_seconds=5,
    max_number_of_messages=2,
)


@broker.task
async def work(number: int) -> None:
    await asyncio.sleep(0.1)
    with open(os.environ["FILE"], "a") as done:
        print(number, file=done)


async def send_all() -> None:
    await broker.startup()
    for number in range(20):
        await work.kiq(number)
    await broker.shutdown()


def send() -> None:
    asyncio.run(send_all())
