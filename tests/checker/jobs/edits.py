"""Edits of a real record of jobs, like those of tests/checker/edits.py."""

from dataclasses import replace

from tests.checker.jobs.kin import is_job
from tests.checker.jobs.rules import View
from tests.checker.limits import Limit


def _events(r, *kinds):
    return [event for event in r.events if event.kind in kinds]


def _drop(*kinds):
    """An edit that takes an event out of the stream."""
    return lambda r, rng: r.events.remove(rng.choice(_events(r, *kinds)))


def _double(*kinds):
    def edit(r, rng):
        place = r.events.index(rng.choice(_events(r, *kinds)))
        r.events.insert(place, r.events[place])

    return edit


def loses_all_of_a_message(r, rng):
    id = rng.choice(r.got).id
    r.events = [event for event in r.events if event.id != id]


def tells_too_late(r, rng):
    event = rng.choice(_events(r, "sent", "acked"))
    r.events.remove(event)
    r.events.append(event)


def keeps_a_letter(r, rng):
    r.final[rng.choice(r.letters).id] = "dead"


def changes_a_letter(r, rng):
    place = rng.randrange(len(r.letters))
    r.letters[place] = replace(r.letters[place], payload="another")


def _pages(r):
    view = View(r)
    return [got for got in r.got if view.is_page(got.id)]


def loses_a_rerun(r, rng):
    """The payload that was sent last to a page never ran."""
    id = rng.choice(_pages(r)).id
    last = max((send for send in r.sends if send.id == id), key=lambda send: send.begin)
    gone = {(got.id, got.receipt) for got in r.got if got.payload == last.payload}
    r.got = [got for got in r.got if got.payload != last.payload]
    r.answers = [answer for answer in r.answers if (answer.id, answer.receipt) not in gone]
    r.letters = [letter for letter in r.letters if letter.payload != last.payload]


def runs_an_older_one(r, rng):
    got = rng.choice(_pages(r))
    got.payload = min((send for send in r.sends if send.id == got.id), key=lambda send: send.begin).payload


def runs_again(r, rng):
    acked = {(answer.id, answer.receipt) for answer in r.answers if answer.kind == "ack" and answer.count == 1}
    got = rng.choice([got for got in _pages(r) if (got.id, got.receipt) in acked])
    r.got.append(replace(got, receipt=got.receipt + 1))


def _signaled(r):
    return [got for got in r.got if got.signal]


def repeats_a_signal(r, rng):
    parks = {(answer.id, answer.receipt) for answer in r.answers if answer.kind == "park" and answer.count == 1}
    got = rng.choice([got for got in _signaled(r) if (got.id, got.receipt) in parks])
    r.got.append(replace(got, receipt=got.receipt + 1))


def loses_a_signal(r, rng):
    rng.choice(_signaled(r)).signal = None


def changes_a_signal(r, rng):
    rng.choice(_signaled(r)).signal = "another"


def never_wakes(r, rng):
    r.final[rng.choice([id for id, state in r.final.items() if state == "finished"])] = "waits"


def counts_wrong(r, rng):
    rng.choice(list(r.counts.values()))["finished"] += 1


def forgets_a_child(r, rng):
    children = {send.id for send in r.sends if send.parent}
    r.events.remove(rng.choice([event for event in _events(r, "acked") if event.id in children]))


def releases_late(r, rng):
    place = r.events.index(rng.choice(_events(r, "released")))
    other = next(event for event in r.events if event.kind == "sent" and is_job(View(r), event.id))
    r.events.insert(place, other)


def _limit(name, limit):
    """An edit that holds the record against a narrower limit."""

    def edit(r, rng):
        r.rules = r.rules | {name: limit}

    return edit


def costs_more(r, rng):
    rng.choice([send for send in r.sends if send.limits]).cost = 100


def books_more(r, rng):
    rng.choice([send for send in r.sends if send.limits]).booked = 100


# Each fault of a server, with the rule that finds it and the edit.
EDITS = {
    "loses an event": ("events_tell_the_state", _drop("delivered")),
    "doubles an event": ("events_tell_the_state", _double("delivered", "acked", "sent")),
    "loses all of a message": ("what_was_answered_is_told", loses_all_of_a_message),
    "loses a send": ("what_was_answered_is_told", _drop("sent")),
    "loses an ack": ("what_was_answered_is_told", _drop("acked")),
    "acks twice": ("what_was_answered_is_told", _double("acked")),
    "tells too late": ("told_in_order", tells_too_late),
    "loses a letter": ("letters_exact", lambda r, rng: r.letters.remove(rng.choice(r.letters))),
    "doubles a letter": ("letters_exact", lambda r, rng: r.letters.append(rng.choice(r.letters))),
    "keeps a letter": ("letters_exact", keeps_a_letter),
    "changes a letter": ("letters_exact", changes_a_letter),
    "runs one too many": ("within_limits", _limit("cores", Limit(concurrency=2, weight=True))),
    "ignores a window": ("within_limits", _limit("all", Limit(rates=((2, 1_000),), weight=True))),
    "ignores costs": ("within_limits", costs_more),
    "ignores what an ack books": ("within_limits", books_more),
    "loses a rerun": ("reruns_kept", loses_a_rerun),
    "runs an older one": ("reruns_kept", runs_an_older_one),
    "runs again": ("reruns_kept", runs_again),
    "loses a signal": ("signals_kept", loses_a_signal),
    "changes a signal": ("signals_kept", changes_a_signal),
    "repeats a signal": ("signals_kept", repeats_a_signal),
    "never wakes": ("nothing_left", never_wakes),
    "counts wrong": ("children_counted", counts_wrong),
    "forgets a child": ("children_counted", forgets_a_child),
    "releases late": ("children_counted", releases_late),
}
