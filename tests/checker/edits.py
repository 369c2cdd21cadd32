"""Edits of a real history: each leaves what a wrong server would have left, and names the rule that must find it.

An edit changes the history in place. `rng` chooses where, and the edit is tried at several places, since not every one
is in the rule's sight.
"""

from dataclasses import replace

from tests.checker.history import Breaker, Closure, Window


def _of(h, verdict):
    """The delivery that a verdict is about."""
    return next(d for d in h.deliveries if d.receipt == verdict.receipt)


def _worked(h, *kinds):
    return [v for v in h.verdicts if v.kind in (kinds or ("ack",)) and v.count == 1]


def _later(h, d):
    """The next delivery of the same message, if there is one."""
    return min((o for o in h.deliveries if o.id == d.id and o.receipt > d.receipt), key=lambda o: o.receipt, default=None)


def _again(h, d, **facts):
    """One more delivery like this one."""
    h.deliveries.append(replace(d, **{"receipt": max(o.receipt for o in h.deliveries) + 1} | facts))


def _given(h):
    """Deliveries whose send was answered, each with its send."""
    sends = {send.id: send for send in h.sends if send.end is not None and not send.refused}
    return [(d, sends[d.id]) for d in h.deliveries if d.id in sends and d.attempt == 1]


def _neighbours(h):
    """Two deliveries of a group, one right after the other, of messages that had no attempt before."""
    last, pairs = {}, []
    for d in sorted(h.deliveries, key=lambda d: d.receipt):
        if d.group in last and d.group and last[d.group].attempt == d.attempt == 1:
            pairs.append((last[d.group], d))
        last[d.group] = d
    return pairs


def shares_a_receipt(h, rng):
    one, other = rng.sample(h.deliveries, 2)
    one.receipt = other.receipt


def runs_two_at_once(h, rng):
    first, second = rng.choice([(a, b) for a, b in _neighbours(h) if a.batch != b.batch])
    second.begin = second.end = first.end


def goes_out_of_order(h, rng):
    first, second = rng.choice(_neighbours(h))
    sends = {send.id: send for send in h.sends}
    sends[first.id].score, sends[second.id].score = sends[second.id].score, sends[first.id].score


def passes_a_failed_message(h, rng):
    again = [(v, _of(h, v), _later(h, _of(h, v))) for v in _worked(h, "nack")]
    nack, d, later = rng.choice([one for one in again if one[1].group and one[2]])
    other = rng.choice([o for o in h.deliveries if o.group == d.group and o.id != d.id and o.attempt == 1])
    _again(h, other, receipt=later.receipt - 1, begin=nack.end + 1, end=nack.end + 2)


def counts_a_silent_nack(h, rng):
    later = [_later(h, _of(h, v)) for v in _worked(h, "silent")]
    rng.choice([d for d in later if d]).attempt += 1


def takes_a_stale_receipt(h, rng):
    acked = {v.id: v for v in _worked(h)}
    old = rng.choice([d for d in h.deliveries if d.id in acked and d.receipt < acked[d.id].receipt])
    acked[old.id].receipt = old.receipt


def loses_a_message(h, rng):
    h.final["finished"].remove(rng.choice(_worked(h)).id)


def finishes_by_itself(h, rng):
    id = rng.choice(h.final["dead"])
    h.final["finished"].append(id)
    h.verdicts = [v for v in h.verdicts if v.id != id]


def loses_one_before_others(h, rng):
    """A crash loses a message, and none that was sent after it."""
    begin = rng.choice(h.sends).begin
    h.windows.append(Window(begin, begin + 500))
    lost = next(send.id for send in sorted(h.sends, key=lambda send: send.begin) if send.begin > begin and send.end)
    h.deliveries = [d for d in h.deliveries if d.id != lost]
    h.verdicts = [v for v in h.verdicts if v.id != lost]
    for ids in h.final.values():
        if lost in ids:
            ids.remove(lost)


def holds_twice(h, rng):
    d = rng.choice(h.deliveries)
    _again(h, d, begin=d.end, end=d.end, at=d.at + 1)


def stands_still_too_long(h, rng):
    ack = rng.choice(_worked(h))
    h.standstills.append((ack.begin - 1, ack.begin + 500))
    ack.count = 0


def releases_too_soon(h, rng):
    d, send = rng.choice([(d, send) for d, send in _given(h) if send.after])
    d.begin = d.end = send.end


def releases_over_the_dead(h, rng):
    _, send = rng.choice([(d, send) for d, send in _given(h) if send.after])
    h.final["dead"].append(rng.choice([member for member in h.sends if member.batch == send.after]).id)
    send.onfail = "HOLD"


def sleeps(h, rng):
    """A message comes late that no other one and no breaker of its group holds up, for it has no group."""
    d, send = rng.choice(_given(h))
    send.group = d.group = ""
    d.end += 5_000


def lets_two_probes_out(h, rng):
    sight = rng.choice(h.sights)
    of_group = [d for d in h.deliveries if d.group == sight.group and d.at >= sight.until]
    probe = min(of_group, key=lambda d: d.at)
    h.verdicts = [v for v in h.verdicts if v.receipt != probe.receipt]
    _again(h, rng.choice([d for d in h.deliveries if d.group == sight.group and d.id != probe.id]), at=probe.at + 1)


def never_opens(h, rng):
    h.breaker = Breaker(failures=2, per=5_000, open=2_000)


def _set(choose, **facts):
    """An edit that gives one of these new values. A function gets the old value."""

    def edit(h, rng):
        one = rng.choice(choose(h))
        for name, value in facts.items():
            setattr(one, name, value(getattr(one, name)) if callable(value) else value)

    return edit


def _count(of, by=1):
    """An edit that adds to a counter of the server."""

    def edit(h, rng):
        counters = getattr(h, of)
        counters[rng.choice(list(counters))] += by

    return edit


# Each fault of a server, with the rule that finds it and the edit.
EDITS = {
    "changes a payload": ("known", _set(lambda h: h.deliveries, intact=False)),
    "changes a group": ("known", _set(lambda h: h.deliveries, group="elsewhere")),
    "changes a batch": ("known", _set(lambda h: h.deliveries, member_of="elsewhere")),
    "uses a receipt twice": ("one_delivery_a_receipt", shares_a_receipt),
    "delivers before the delay is over": ("not_early", _set(lambda h: [send for _, send in _given(h)], delay=10_000)),
    "delivers early by its own clock": ("not_early", _set(lambda h: h.deliveries, due=lambda due: due + 10_000)),
    "runs two at once": ("never_two_at_once", runs_two_at_once),
    "goes out of order": ("group_order", goes_out_of_order),
    "passes a failed message": ("failed_first", passes_a_failed_message),
    "counts an attempt twice": ("attempts_exact", _set(lambda h: h.deliveries, attempt=lambda n: n + 1)),
    "counts a silent nack": ("attempts_exact", counts_a_silent_nack),
    "delivers after an ack": ("ack_is_final", lambda h, rng: _again(h, _of(h, rng.choice(_worked(h))))),
    "takes a stale receipt": ("stale_receipts", takes_a_stale_receipt),
    "loses a message": ("nothing_lost", loses_a_message),
    "finishes by itself": ("nothing_lost", finishes_by_itself),
    "never delivers": ("nothing_lost", lambda h, rng: h.final["ready"].append("m")),
    "dies too late": ("dead_exactly", lambda h, rng: h.dead[rng.choice(list(h.dead))].update(failures=9)),
    "dies for another reason": ("dead_exactly", lambda h, rng: h.dead[rng.choice(list(h.dead))].update(reason="ttl")),
    "holds twice": ("one_holder", holds_twice),
    "loses one before others": ("no_hole", loses_one_before_others),
    "does an effect twice": ("effects_once", _count("counted")),
    "does what it refuses": ("refused_is_nothing", _set(lambda h: [send for _, send in _given(h)], refused=True)),
    "sleeps": ("in_time", sleeps),
    "delivers in a pause": ("quiet_in_pause", lambda h, rng: h.quiet.append((h.deliveries[9].at - 1, h.deliveries[9].at + 1))),
    "has another replica": ("same_state", lambda h, rng: h.differences.append("the replica's digest is another")),
    "jumps with its clock": ("clock_goes_on", _set(lambda h: h.deliveries, at=lambda at: at + 5_000)),
    "ends leases in a standstill": ("in_time_in_a_standstill", stands_still_too_long),
    "counts what nobody handled": ("attempts_counted", _count("attempts")),
    "wakes a snoozed message": ("waits_kept", _set(lambda h: [v for v in h.verdicts if v.delay], delay=5_000)),
    "changes a note": ("notes_kept", _set(lambda h: [d for d in h.deliveries if d.note], note="another")),
    "loses a note": ("notes_kept", _set(lambda h: [d for d in h.deliveries if d.note], note="")),
    "acks and sends nothing": ("handed_on", lambda h, rng: h.final["finished"].remove(
        rng.choice([v.next for v in _worked(h) if v.next in h.final["finished"]]))),
    "sends and acks nothing": ("handed_on", lambda h, rng: h.final["finished"].remove(
        rng.choice([v.id for v in _worked(h) if v.next in h.final["finished"]]))),
    "releases too soon": ("held_until_its_batch_ends", releases_too_soon),
    "releases over the dead": ("held_until_its_batch_ends", releases_over_the_dead),
    "ends a pause": ("quiet_after_nack", _set(lambda h: [v for v in h.verdicts if v.pause], pause=lambda p: (p[0], 5_000))),
    "closes a breaker": ("quiet_while_open", _set(lambda h: h.sights, until=lambda until: until + 5_000)),
    "never opens a breaker": ("opens_in_time", never_opens),
    "lets two probes out": ("one_probe", lets_two_probes_out),
    "takes though closed": ("closed_takes_nothing", lambda h, rng: h.closures.append(
        Closure((send := rng.choice(_given(h))[1]).begin - 1, send.end + 1))),
}  # fmt: skip
