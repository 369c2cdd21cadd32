"""The event stream of a queue (EVENTS): each transition of a message, and the states that follow from them."""

from dataclasses import dataclass

from tests.harness.replies import Queue

# The state of a message after each event. Events that are not named here do not change the state.
AFTER = {
    "sent": "waits",
    "ready": "ready",
    "delivered": "running",
    "acked": "finished",
    "nacked": "waits",
    "timeout": "waits",
    "dead": "dead",
    "cancelled": "cancelled",
    "released": "waits",
    "redriven": "waits",
    "rescheduled": "waits",
    "replaced": None,
    "purged": None,
}
# The states in which an event can find a message; one that is not named here leaves all as they were.
BEFORE = {
    "sent": {None, "finished", "dead", "cancelled"},
    "ready": {"waits", "running"},
    "delivered": {"ready"},
    "acked": {"running"},
    "nacked": {"running"},
    "timeout": {"running"},
    "dead": {"waits", "ready", "running"},
    "cancelled": {"waits", "ready", "running", "dead"},
    "released": {"waits"},
    "redriven": {"dead"},
}
# The events after which no worker has the message.
ENDS = {"acked", "nacked", "timeout", "dead", "cancelled", "ready"}
# The states of DQ.LIST in these words.
SEEN = {"delayed": "waits", "retry": "waits", "held": "waits", "blocked": "ready"}
STATES = ("delayed", "ready", "blocked", "retry", "running", "finished", "dead", "cancelled", "held")


@dataclass(frozen=True)
class Event:
    """One entry. at: as of when it happened, in Unix ms."""

    kind: str
    id: str
    at: int
    attempt: int = 0
    consumer: str = ""
    reason: str = ""


def read(client, stream) -> list:
    """All events of a stream, in its order."""
    return [_event(fields) for _, fields in client.xrange(stream)]


def _event(fields) -> Event:
    text = {name.decode(): value.decode() for name, value in fields.items()}
    attempt = int(text.get("attempt", 0))
    return Event(text["event"], text.get("id", ""), int(text["at"]), attempt, text.get("consumer", ""), text.get("reason", ""))


def tell(events) -> tuple:
    """The state of each message by its events, and descriptions of missing or doubled events."""
    states, faults = {}, []
    for number, event in enumerate(events):
        before = states.get(event.id)
        if before not in BEFORE.get(event.kind, {before}):
            faults.append(f"entry {number}: {event.kind} of {event.id}, which was {before}")
        states[event.id] = AFTER.get(event.kind, before)
    return states, faults


def there(client, key) -> dict:
    """The state of each message that the queue has."""
    q = Queue(client, key)
    states = {}
    for state in STATES:
        for id in q.do("LIST", state, "COUNT", 10_000, "IDS")[1]:
            states[id.decode()] = SEEN.get(state, state)
    return states
