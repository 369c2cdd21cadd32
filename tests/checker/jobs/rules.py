"""The promises of jobs as predicates over a record. Each finding is one line of English.

If the order of two moments is in doubt, the harmless order is assumed, so a finding is never a matter of timing.
"""

from collections import Counter, defaultdict

from tests.checker import stream
from tests.checker.jobs import kin
from tests.checker.limits import Limits


def check(record) -> list:
    """All violations; empty for a good record."""
    view = View(record)
    return [f"{rule.__name__}: {text}" for rule in (*RULES, *kin.RULES) for text in rule(view)]


class View:
    """The indexes in which the rules look things up."""

    def __init__(self, record):
        self.r = record
        self.sends, self.got, self.answers, self.signals = (defaultdict(list) for _ in range(4))
        for send in record.sends:
            self.sends[send.id].append(send)
        for got in sorted(record.got, key=lambda got: got.receipt):
            self.got[got.id].append(got)
        for answer in record.answers:
            self.answers[answer.id, answer.receipt].append(answer)
        for signal in record.signals:
            self.signals[signal.id].append(signal)
        self.places = defaultdict(list)
        for place, event in enumerate(record.events):
            self.places[event.id].append(place)
        self.deliveries = {(got.id, got.receipt): got for got in record.got}

    def of(self, answer):
        """The delivery that an answer belongs to."""
        return self.deliveries[answer.id, answer.receipt]

    def answers_to(self, got) -> list:
        """The answers of a worker to the delivery."""
        return self.answers.get((got.id, got.receipt), [])

    def answered_meanwhile(self, id, kind, others):
        """Each delivery that was surely answered with `kind`, with one of `others` that surely came while it ran."""
        for got in self.got[id]:
            for answer in self.answers_to(got):
                came = [other for other in others if got.end < other.begin and other.end < answer.begin]
                if answer.kind == kind and self.r.worked(answer) and came and not self.r.undone(got):
                    yield got, answer, came[-1]

    def until_next(self, got) -> list:
        """The places of the events of its message from this delivery to the next one, if no reply was lost."""
        places = self.places[got.id]
        begins = [at for at, place in enumerate(places) if self.r.events[place].kind == "delivered"]
        if len(begins) != len(self.got[got.id]):
            return []
        at = self.got[got.id].index(got)
        return places[begins[at] : [*begins, None][at + 1]]

    def is_page(self, id) -> bool:
        """Whether it is sent repeatedly under the same id, with REPLACE RERUN."""
        return len(self.sends[id]) > 1


def events_tell_the_state(view):
    """Each transition has one entry, in order: none is missing and none comes twice."""
    states, faults = stream.tell(view.r.events)
    yield from faults
    for id in states.keys() | view.r.final.keys():
        # A dead job has gone to the other queue, and a message that was removed is none.
        told, found = states.get(id), view.r.final.get(id)
        if told != found and not (told == "dead" and found is None and kin.is_job(view, id)):
            yield f"{id} is {found}, and by the events {told}"


def what_was_answered_is_told(view):
    """A change that was answered is in the stream, and one that was refused is not."""
    told = Counter((event.kind, event.id) for event in view.r.events)
    for id, sends in view.sends.items():
        count, sure = told["sent", id], [send for send in sends if send.is_sure and not view.r.undone(send)]
        if sure and not count:
            yield f"the send of {id} was answered, and no event tells of it"
        if count > sum(not send.refused for send in sends):
            yield f"{count} events tell of the sends of {id}"
    events = Counter((event.kind, event.id, event.attempt, event.consumer) for event in view.r.events)
    answered, asked, seen = Counter(), Counter(), Counter()
    for got in view.r.got:
        if not view.r.undone(got):
            seen["delivered", got.id, got.attempt, got.consumer] += 1
    for answer in view.r.answers:
        got = view.of(answer)
        what = ("acked" if answer.kind == "ack" else "nacked", got.id, got.attempt, got.consumer)
        answered[what] += view.r.worked(answer)
        asked[what] += answer.count != 0
    for what, count in (seen | answered).items():
        if events[what] < count:
            yield f"{count} times {_words(what)}, and {events[what]} events tell of it"
    for what, count in events.items():
        if what[0] in ("acked", "nacked") and count > asked[what]:
            yield f"{count} events tell of {_words(what)}, which happened {asked[what]} times at most"


def _words(what) -> str:
    kind, id, attempt, consumer = what
    return f"{id} was {kind} by {consumer} in attempt {attempt}"


def told_in_order(view):
    """A change that was requested after another had been answered is behind it in the stream."""
    places = defaultdict(list)
    for place, event in enumerate(view.r.events):
        places[event.kind, event.id, event.attempt, event.consumer].append(place)
    done = []
    for send in view.r.sends:
        found = places["sent", send.id, 0, ""]
        if send.is_sure and not send.taken and len(found) == 1 and not view.is_page(send.id):
            done.append((send, found[0], f"the send of {send.id}"))
    for answer in view.r.answers:
        got = view.of(answer)
        found = places["acked" if answer.kind == "ack" else "nacked", got.id, got.attempt, got.consumer]
        if answer.count == 1 and len(found) == 1:
            done.append((answer, found[0], f"the {answer.kind} of {got.id}"))
    done = [one for one in done if not view.r.undone(one[0])]
    ended = sorted(done, key=lambda one: one[0].end)
    at, last = 0, None
    for event, place, name in sorted(done, key=lambda one: one[0].begin):
        while at < len(ended) and ended[at][0].end < event.begin:
            last = ended[at] if last is None or ended[at][1] > last[1] else last
            at += 1
        if last is not None and last[1] > place:
            yield f"{last[2]} was answered before {name} was asked, and is behind it in the stream"


def letters_exact(view):
    """Each job that dies is in the other queue, once, and no longer in its own."""
    died = Counter(
        (event.id, event.reason, event.attempt) for event in view.r.events if event.kind == "dead" and kin.is_job(view, event.id)
    )
    arrived = Counter((letter.id, letter.reason, letter.attempts) for letter in view.r.letters)
    for one in died.keys() | arrived.keys():
        if died[one] != arrived[one]:
            id, reason, attempts = one
            yield f"{id} died {died[one]} times in attempt {attempts}, reason {reason}, and is in the other queue {arrived[one]} times"
    for id, state in view.r.final.items():
        if state == "dead" and kin.is_job(view, id):
            yield f"{id} is dead, and has not gone to the other queue"
    for letter in view.r.letters:
        if letter.payload not in {send.payload for send in view.sends[letter.id]}:
            yield f"{letter.id} died with a payload that was not sent"


def within_limits(view):
    """No delivery is above a limit, in any window."""
    limits, jobs = Limits(view.r.rules), {send.id: send for send in view.r.sends if send.limits}
    for event in view.r.events:
        job = jobs.get(event.id)
        if job is None:
            continue
        if event.kind == "delivered":
            limits.begins(event.at, job.id, job.limits, job.cost)
        elif event.kind in stream.ENDS:
            if event.kind == "acked" and job.booked is not None:
                limits.books(job.id, job.booked)
            limits.ends(job.id, job.limits)
    yield from limits.faults


def reruns_kept(view):
    """The newest payload of a page is worked off, none twice, and none after a newer one."""
    for id, sends in view.sends.items():
        if not view.is_page(id):
            continue
        of = {send.payload: send for send in sends}
        runs = view.got[id]
        for got in runs:
            if got.payload not in of or of[got.payload].refused:
                yield f"{id} came with {got.payload!r}, which was not sent"
        runs = [got for got in runs if got.payload in of]
        sure = [send for send in sends if send.is_sure and not view.r.undone(send)]
        acked = set()
        for got in runs:
            for send in sure:
                if send.end < got.begin and _is_older(of[got.payload], send):
                    yield f"{got.payload!r} came after {send.payload!r} had been sent"
            if got.payload in acked:
                yield f"{got.payload!r} was delivered again after its ack"
            if any(a.kind == "ack" and view.r.worked(a) for a in view.answers_to(got)):
                acked.add(got.payload)
        ran = [of[got.payload] for got in runs]
        ran += [of[letter.payload] for letter in view.r.letters if letter.id == id and letter.payload in of]
        for send in sure:
            if all(_is_older(other, send) for other in ran):
                yield f"{send.payload!r} was lost: neither it nor a newer one has run"
        for got, answer, later in view.answered_meanwhile(id, "ack", sure):
            ends = [place for place in view.until_next(got) if view.r.events[place].kind == "acked"]
            behind = [view.r.events[place + 1 : place + 2] for place in ends]
            if any([(event.kind, event.id) for event in events] != [("sent", id)] for events in behind):
                yield f"{later.payload!r} was to run when {got.payload!r} was acked, and was not sent then"


def _is_older(one, other) -> bool:
    """Whether one send had surely been done before the other."""
    return one.end is not None and one.end < other.begin


def signals_kept(view):
    """A signal is delivered once: with the next delivery, and until the message is parked again."""
    for id, signals in view.signals.items():
        of, used = {signal.text: signal for signal in signals}, []
        is_parked = any(send.parked for send in view.sends[id])
        for got in view.got[id]:
            signal = of.get(got.signal)
            if got.signal is not None and (signal is None or signal.count == 0):
                yield f"{id} got the signal {got.signal!r}, which nobody sent to it"
            if signal and any(signal is other and view.r.worked(park) for other, park in used):
                yield f"{id} got the signal {got.signal!r} again, after it had been parked with it"
            if got.signal is None and is_parked:
                yield f"{id} was parked, and came without a signal"
            for other in signals:
                came = view.r.worked(other) and other.end < got.begin
                is_newer = signal is None or _is_older(signal, other)
                if came and is_newer and not any(not _is_older(one, other) for one, _ in used):
                    yield f"{id} came without the signal {other.text!r}"
            parks = [answer for answer in view.answers_to(got) if answer.kind == "park" and answer.count != 0]
            used += [(signal, park) for park in parks if signal]
            is_parked = any(view.r.worked(park) and not park.waits for park in parks)
        sure = [signal for signal in signals if view.r.worked(signal)]
        for got, _, early in view.answered_meanwhile(id, "park", sure):
            if any(view.r.events[place].kind == "released" for place in view.until_next(got)):
                yield f"{id} was parked, though the signal {early.text!r} had come"


def nothing_left(view):
    """At the end all jobs have ended, except parents that still wait for children."""
    waiting = kin.Families(view).waiting
    for id, state in view.r.final.items():
        if state in ("waits", "ready", "running") and id not in waiting:
            yield f"{id} is left: {state}"
    if not view.r.windows and waiting:
        yield f"{len(waiting)} parents wait for children"


RULES = (
    events_tell_the_state, what_was_answered_is_told, told_in_order, letters_exact, within_limits, reruns_kept, signals_kept,
    nothing_left,
)  # fmt: skip
