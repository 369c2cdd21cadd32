"""Queue: every verb, over both protocols, with clients that decode and clients that do not."""

from datetime import datetime, timedelta, timezone

import pytest
import redis
from dqueue import Message, Next, Queue, Signal, Window, connect


@pytest.fixture(params=["resp2", "resp3", "decoding"])
def q(dq_url, request):
    options = {"protocol": 2} if request.param == "resp2" else {"decode_responses": request.param == "decoding"}
    client = connect(dq_url, **options)
    yield Queue(client, "jobs")
    client.close()


def test_a_message_is_sent_fetched_and_acked(q):
    q.create(lease=5000, retain=timedelta(hours=1), backoff=("EXP", 100), rate=(1000, 1000))
    id = q.send(b"\x00payload", type="mail", headers={"trace": b"\x01", "user": "ann"}, priority=-1)
    assert q.len() == q.len("ready") == 1
    assert q.peek()[0].id == id
    [message] = q.fetch(consumer="me", block=100)
    assert isinstance(message, Message)
    assert (message.id, message.payload, message.attempt) == (id, b"\x00payload", 1)
    assert (message.type, message.priority, message.group, message.score) == ("mail", -1, None, None)
    assert message.headers == {"trace": b"\x01", "user": b"ann"}
    assert message.retries_left == 3 and message.sent_at == message.due_at < message.lease_until
    assert q.touch(timedelta(seconds=60), message) == 1
    record = q.get(id)
    assert (record.state, record.status, record.consumer, record.receipt) == (
        "running",
        "running",
        "me",
        message.receipt,
    )
    [consumer] = q.consumers()
    assert (consumer.name, consumer.running) == ("me", 1)
    assert q.ack(message, message.receipt + 1, result="sent") == 1
    assert q.get(id).result == "sent"
    assert q.wait(id, 1000) == ("finished", "sent")
    assert q.info()["acked"] == 1 and q.info()["paused"] is False
    assert q.info()["backoff"] == "EXP 100"
    assert q.do("LEN", "finished") == 1
    assert q.get("nobody") is None and q.explain("nobody") is None and q.wait("nobody", 10) is None


def test_fetch_acks_in_the_same_round_trip(q):
    q.send_many(["a", "b"])
    [first] = q.fetch()
    [second] = q.fetch(ack=[first])
    assert (first.text, second.text) == ("a", "b")
    assert q.fetch(ack=[second.receipt]) == []
    assert q.info()["acked"] == 2


def test_a_token_repeats_a_delivery(q):
    q.send_many(["a", "b"])
    [first] = q.fetch(consumer="w", token="1", bind=True, grace=timedelta(seconds=5))
    [again] = q.fetch(consumer="w", token=b"1", bind=True, grace=5000)
    assert (again.receipt, again.attempt, again.text) == (first.receipt, 1, "a")
    [second] = q.fetch(consumer="w", token="2", ack=[first])
    assert second.text == "b"


def test_a_fetch_takes_from_the_first_of_several_queues_that_can_give(q):
    low = Queue(q.client, "low")
    assert q.fetch_first([low]) == []
    low.send("x", id="a")
    [message] = q.fetch_first([low], consumer="me")
    assert (message.queue, message.id) == ("low", "a")
    q.send("y")
    low.send("z")
    assert [message.text for message in q.fetch_first([low], block=100, count=5)] == ["y"]


def test_messages_follow_from_one_that_is_finished(q):
    q.create(retain=60_000)
    id = q.send("order", id="o")
    [message] = q.fetch()
    following = (Next("parcel", to="parcels", id="p", group="ann"), Next("mail", delay=timedelta(seconds=60)))
    [parcel, mail] = q.ack_send(message, *following, result="paid")
    assert (parcel, q.get(mail).state, q.get(id).result) == ("p", "delayed", "paid")
    assert [m.text for m in Queue(q.client, "parcels").fetch()] == ["parcel"]
    assert q.ack_send(message.receipt, Next("parcel")) is None


def test_notes_snoozes_and_results(q):
    q.create(retain=60_000)
    q.send("x", id="x", group="g")
    [message] = q.fetch()
    assert message.note is None
    assert q.touch(60_000, message, note="half") == 1
    assert q.nack(message, silent=True, delay=60_000, pause=("GROUP", 60_000)) == 1
    record = q.get("x")
    assert (record.state, record.note, record.attempt) == ("delayed", "half", 0)
    assert q.reschedule("x", delay=0) and q.fetch() == []
    q.resume(group="g")
    [message] = q.fetch()
    assert message.note == "half"
    q.send("y", id="y")
    [other] = q.fetch()
    assert q.fetch(ack=[message, other], results=["one", b"two"]) == []
    assert [q.get(id).result for id in "xy"] == ["one", "two"]


def test_a_message_is_parked_until_a_signal(q):
    q.send("x", id="x", park=timedelta(days=30))
    assert q.explain("x").code == "parked" and q.explain("x").until is not None
    assert q.signal("x", "first") and not q.signal("nobody")
    [message] = q.fetch()
    assert message.signal == "first" == q.get("x").signal
    assert q.nack(message, silent=True, park=True, note="asked") == 1
    assert q.explain("x").until is None
    q.send("y", id="y")
    [other] = q.fetch()
    assert q.ack_send(other, Signal("x", b"second"), Next("z", id="z"), Signal("nobody", to="q2")) == [True, "z", False]
    [message] = q.fetch(count=1)
    assert (message.id, message.signal, message.note) == ("x", "second", "asked")


def test_limits_with_names(q):
    q.create(fair="COST")
    q.limit("tokens", rates=[(1000, timedelta(minutes=1)), (5000, 3_600_000)], weight=True)
    q.limit("user-*", concurrency=2, weight=True)
    q.send("x", id="x", limits=["user-7", "tokens"], cost=2)
    q.send("y", id="y", limits=["user-7", "tokens"], cost=2)
    record = q.get("x")
    assert (record.limits, record.cost) == (["user-7", "tokens"], 2)
    [message] = q.fetch(count=2)
    assert (q.explain("y").code, q.explain("y").by) == ("limit", "user-7")
    used = {one.limit: one for one in q.limits(count=1)}
    assert (used["user-7"].rule, used["user-7"].running_cost, used["user-7"].next_free) == ("user-*", 2, None)
    assert q.ack(message, cost=7) == 1
    assert [one.rates for one in q.limits() if one.limit == "tokens"] == [[Window(1000, 60_000, 7), Window(5000, 3_600_000, 7)]]
    q.limit("user-*", concurrency=1, weight=True)
    assert q.fetch() == []
    assert [one.next_free for one in q.limits() if one.limit == "user-7"] == ["never"]
    q.limit("tokens")
    assert [one.rule for one in q.limits() if one.limit == "tokens"] in ([], [None])


def test_a_message_waits_for_its_children(q):
    parts = Queue(q.client, "parts")
    parts.create(retain=60_000, retries=0)
    q.send("publish", id="p", children=2)
    parts.send("1", id="a", parent=("jobs", "p"))
    parts.send("2", id="b", parent=("jobs", "p"), on_dead="GO")
    assert q.explain("p").code == "children-open" and q.get("p").children["total"] == 2
    assert parts.get("b").parent == {"key": "jobs", "id": "p", "ondead": "GO"}
    first, second = parts.fetch(count=2)
    parts.ack(first, result="done")
    parts.nack(second, error="broken")
    [message] = q.fetch()
    assert message.children is not None and (message.children["finished"], message.children["dead"]) == (1, 1)
    children = [(one.key, one.id, one.state, one.result, one.error) for one in q.children("p", count=1)]
    assert children == [("parts", "a", "finished", "done", None), ("parts", "b", "dead", None, "broken")]


def test_a_running_message_runs_once_more(q):
    q.send("1", id="x")
    [message] = q.fetch()
    assert q.send("2", id="x", replace=True) is None
    assert q.send("3", id="x", replace=True, rerun=True) == "x"
    assert q.get("x").rerun
    q.ack(message)
    assert [message.text for message in q.fetch()] == ["3"] and not q.get("x").rerun


def test_options_of_a_message(q):
    assert q.send("x", group="g", if_group=True) is None
    assert q.send_many(["a", "b"], group="g", if_group=True) == []
    assert q.send("x", id="x", replace=True, delay=60_000, max_wait=0, retain=60_000) == "x"
    record = q.get("x")
    assert record.first_sent_at == record.sent_at == record.due_at
    [message] = q.fetch()
    q.ack(message)
    assert q.get("x").state == "finished"
    q.send("y", id="y", expire_at=200_000_000_000)
    assert q.get("y").reason == "expired"


def test_failures_are_retried_and_redriven(q):
    q.create(retries=1, backoff=("FIXED", 60_000), errors=9)
    q.send("x", id="x")
    [message] = q.fetch()
    assert q.nack(message, silent=True) == 1
    [message] = q.fetch()
    assert message.attempt == 1
    assert q.nack(message, error="down", delay=0) == 1
    [message] = q.fetch()
    assert q.nack(message, error="bad", fatal=True) == 1
    assert q.nack(message) == 0
    [dead] = q.list("dead")
    assert (dead.id, dead.error, dead.reason, dead.failures) == ("x", "bad", "rejected", 2)
    assert dead.errors is not None
    assert [(one.attempt, one.consumer, one.text) for one in dead.errors] == [(1, None, "down"), (2, None, "bad")]
    assert q.redrive("x", "y") == 1 and q.redrive() == 0
    assert q.cancel("x", "y") == ["ready", None]


def test_messages_are_found_and_changed_by_conditions(q):
    for i in range(5):
        q.send(f"order {i}", id=f"m{i}", type="mail", headers={"to": f"user{i}"})
    assert [record.id for record in q.find("ready", id="m[1-3]", rev=True, count=2)] == ["m3", "m2", "m1"]
    assert [record.id for record in q.list("ready", rev=True)] == ["m4", "m3", "m2", "m1", "m0"]
    assert [record.id for record in q.find("ready", header=("to", "user2"), payload="order ?")] == ["m2"]
    assert [*q.find("ready", since=datetime.now(timezone.utc) + timedelta(hours=1))] == []
    assert q.cancel_found("ready", id="m0") == 1
    for message in q.fetch(count=2):
        q.nack(message, error="timeout", fatal=True)
    assert q.redrive_found(error="time*", count=1) == 2
    assert q.purge_found("ready", type="mail", count=1) == 4
    assert q.len() == 0


def test_a_taken_id_is_refused_or_replaced(q):
    assert q.send("1", id="order", delay=60_000) == "order"
    assert q.send("2", id="order") is None
    assert q.send("3", id="order", replace=True, at=datetime.now(timezone.utc) + timedelta(hours=1)) == "order"
    assert q.reschedule("order", delay=0) and q.update("order", "4")
    assert q.fetch()[0].text == "4"
    assert not q.reschedule("order", delay=0) and not q.update("nobody", "5")


@pytest.mark.parametrize("protocol", [2, 3])
def test_an_id_of_any_bytes_comes_back(dq_url, protocol):
    q = Queue(connect(dq_url, protocol=protocol), "jobs")
    id = b"\xff\x00 id".decode("utf-8", "surrogateescape")
    assert q.send("x", id=id) == id
    assert q.fetch()[0].id == id
    assert q.get(id).id == id


def test_groups_are_ordered_and_listed(q):
    q.create(retries=-1, group_concurrency=1, on_retry="BLOCK")
    q.send("b", id="b", group="g", score=2.5)
    q.send("a", id="a", group="g", score=1.5)
    assert q.group_push('{"user":7,"no":"n1","t":3}', ["user"], id_path="no", score_path="/t") == ("7", "n1")
    assert q.group_push('{"user":7,"no":"n1","t":3}', ["user"], id_path="no") is None
    [head] = q.fetch(group="g", count=1)
    assert (head.id, head.group, head.score) == ("a", "g", 1.5)
    assert q.explain("b").code == "group-busy" and q.explain("b").by is not None
    assert {group.group: group.running for group in q.groups(count=1)} == {"g": 1, "7": 0}
    q.pause(group="7", for_=60_000)
    assert [group.group for group in q.groups(state="paused")] == ["7"]
    q.resume(group="7")
    q.set_group("7", weight=2, concurrency=3, rate=(5, 1000))
    q.set_group("7", concurrency=0, rate=0)
    assert next(group for group in q.groups() if group.group == "7").weight == 2
    assert q.purge(group="7") == 1


def test_a_breaker_stops_a_group_that_fails(q):
    minute = timedelta(minutes=1)
    q.create(retries=-1, breaker=(2, minute, 5000, minute))
    assert q.info()["breaker"] == "2 PER 60000 OPEN 5000 MAX 60000"
    q.alter(breaker=(1, minute, minute))
    assert q.info()["breaker"] == "1 PER 60000 OPEN 60000 MAX 60000"
    q.send("a", id="a", group="g")
    [message] = q.fetch()
    q.nack(message)
    assert q.fetch() == [] and q.info()["breakers-open"] == 1
    [group] = q.groups()
    assert (group.breaker, group.open_until) == ("open", q.explain("a").until)
    assert (q.explain("a").code, q.explain("a").by) == ("breaker-open", "g")
    q.resume(group="g")
    assert [message.id for message in q.fetch()] == ["a"]
    q.alter(breaker=0)
    assert q.info()["breaker"] is None


def test_a_closed_queue_takes_nothing_until_it_is_open_again(q):
    q.create(sends="OFF")
    with pytest.raises(redis.ResponseError, match="QUEUECLOSED"):
        q.send("x")
    q.alter(sends="ON")
    assert q.send("x")


def test_list_goes_through_all_pages(q):
    ids = q.send_many([str(n) for n in range(25)], delay=60_000, type="t")
    assert [record.id for record in q.list("delayed", count=10)] == ids
    assert list(q.list("delayed", type="other")) == []
    assert q.purge(state="delayed") == 25


def test_dead_messages_go_elsewhere_and_a_stream_has_every_transition(q):
    q.create(retries=0, dead_to=("dead", "rejected"), events="events", events_len=50)
    info = q.info()
    told = [str(info[name]).strip("b'") for name in ("deadto", "events", "eventslen")]
    assert told == ["dead rejected", "events", "50"]
    q.alter(dead_to="dead", events="")
    assert q.info()["events"] is None
    q.alter(dead_to="")
    assert q.info()["deadto"] is None


def test_schedules_are_created_listed_and_removed(q):
    fires = q.schedule("nightly", "report", cron="0 3 * * *", tz="Europe/Berlin", missed="SKIP", type="report")
    q.schedule("often", "tick", every=timedelta(minutes=5), overlap="SKIP")
    assert {schedule.name: schedule.fired for schedule in q.schedules()} == {"nightly": 0, "often": 0}
    assert fires == next(schedule.next_at for schedule in q.schedules() if schedule.name == "nightly")
    assert q.unschedule("often") and not q.unschedule("often")
    q.schedule("thrice", "tick", every=1000, times=3, jitter=10, until=2_000_000_000_000)
    [_, thrice] = q.schedules()
    assert (thrice.times, thrice.jitter, thrice.until, thrice.skipped) == (3, 10, 2_000_000_000_000, 0)
    assert q.pause_schedule("thrice") and not q.pause_schedule("nobody")
    assert [schedule.paused for schedule in q.schedules()] == [False, True]
    assert q.resume_schedule("thrice") and not q.schedules()[1].paused


def test_ensure_and_alter(q):
    q.ensure(retries=1)
    q.ensure(retries=2)
    q.ensure()
    q.alter(dedup=timedelta(minutes=1), rate=(10, timedelta(seconds=1)))
    info = q.info()
    assert (info["retries"], info["dedup"], info["rate"]) == (2, 60_000, "10 PER 1000")
    q.alter(rate=0)
    assert q.info()["rate"] is None
    with pytest.raises(redis.ResponseError, match="already exists"):
        q.create()
    q.pause()
    assert q.info()["paused"] is True
    q.resume()
    assert set(q.tick()) >= {"due", "timeouts", "dead"}


def test_a_message_is_held_by_a_batch_until_all_of_it_have_ended(q):
    q.send("one", batch="b", id="one")
    q.send("last", after="b", on_fail="GO", id="last")
    [batch] = q.batches()
    assert (batch.batch, batch.pending, batch.held) == ("b", 1, 1)
    held = q.get("last")
    assert held is not None and held.state == "held"
    assert held.after == {"batch": "b", "pending": 1, "finished": 0, "dead": 0, "cancelled": 0}
    assert [record.batch for record in q.find("ready", batch="b")] == ["b"]
    [message] = q.fetch()
    q.ack(message)
    assert [message.id for message in q.fetch()] == ["last"]
    assert list(q.batches()) == []
