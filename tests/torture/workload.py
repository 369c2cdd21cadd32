"""The use of a queue under faults: its options, who works on it, and how."""

from collections.abc import Callable
from dataclasses import dataclass, field

from tests.checker.actors import Ways, acks_of, produce, watch
from tests.checker.check import check
from tests.checker.history import Breaker, History
from tests.torture.actors import consume

FAR = 2**50
RETRIES = 3


@dataclass(frozen=True)
class Workload:
    """One queue, or one family of queues."""

    name: str = "orders"
    # The suffix that is added to the key of the target.
    suffix: str = ""
    retries: int = RETRIES
    # With DEDUP: a SEND whose reply was lost is asked again, perhaps after its message was acked.
    options: tuple = ("DEDUP", FAR)
    ways: Ways = Ways()
    producers: int = 3
    consumers: int = 5
    # The functions of the processes that send and of those that fetch.
    produce: Callable = produce
    consume: Callable = consume
    # The options that the checker needs to know.
    breaker: Breaker | None = None
    concurrency: dict = field(default_factory=dict)

    def queues(self, key) -> list:
        """The keys of all of its queues. `key` is that of the target."""
        return [key + self.suffix]

    def keys(self, key) -> list:
        """All of its keys."""
        return [*self.queues(key), *acks_of(key + self.suffix)]

    def watchers(self) -> list:
        """The functions of the processes that observe, by the ends of the names of their journals."""
        return [("watch", watch)] if self.breaker else []

    def judge(self, target) -> tuple:
        """How many operations were answered, how many of them a crash has undone, and all violations."""
        history = History.read(
            sorted(target.journals.glob(f"{self.name}.*.jsonl")),
            retries=self.retries, breaker=self.breaker, concurrency=self.concurrency, windows=target.windows, steps=target.steps,
            standstills=target.standstills, disturbed=target.disturbed, quiet=target.quiet, **target.end_state(self),
        )  # fmt: skip
        return history.operations, history.gone, check(history)

    def create(self, client, key) -> None:
        """Makes the queue."""
        client.execute_command(
            "DQ.CREATE", key, "RETRIES", self.retries, "RETAIN", FAR, "RETAINCOUNT", 0, "BACKOFF", "FIXED", 20, *self.options
        )  # fmt: skip
        for group, most in self.concurrency.items():
            client.execute_command("DQ.GROUPSET", key, group, "CONCURRENCY", most)


ORDERS = Workload()

# Partners that fail a lot, each a group with a breaker; half of them are called by three consumers at once.
PARTNERS = Workload(
    name="partners",
    suffix=":partners",
    retries=30,
    options=("DEDUP", FAR, "BREAKER", 3, "PER", 400, "OPEN", 150, "MAX", 600),
    ways=Ways(groups=6, ungrouped=0, batches=0, nack=0.25, silent=0.1, pause_queue=0.03, batch_fetches=False, rate=40),
    producers=1,
    consumers=3,
    breaker=Breaker(failures=3, per=400, open=150),
    concurrency={f"g{n}": 3 for n in range(0, 6, 2)},
)
