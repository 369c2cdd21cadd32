"""The actions of the pages of `dq web`, each after a question."""

import re

import pytest

from tests.harness.server import wait_for

pytest_plugins = ["tests.harness.web_fixtures"]
pytestmark = pytest.mark.timeout(600)


def test_an_action_is_counted_confirmed_done_and_written_down(start, shop):
    web = start()
    me = web.visitor()
    asked = me.get("confirm", act="redrive", queue="shop", state="dead", type_="mail")
    assert "This is about 1 message ." in asked.words()
    assert shop.execute_command("DQ.LEN", "shop", "dead") == 1
    assert "1 message pending again" in me.send(asked).words()
    assert shop.execute_command("DQ.LEN", "shop", "dead") == 0
    asked = me.get("confirm", act="redrive", queue="shop", state="dead")
    assert "This is about 0 messages" in asked.words() and "<form" not in asked.text.split("<main>")[1]
    [line] = wait_for(lambda: web.audit(), what="the line of the audit log")
    assert line["action"] == "redrive" and line["what"] == "messages of shop: dead, type mail"
    assert line["outcome"] == "1 message pending again" and line["address"] == "127.0.0.1"


def test_every_action_works(web, shop):
    do = shop.execute_command
    asked = web.get("confirm", act="pause", queue="shop")
    assert "shop is paused for 10m0s" in web.send(asked, for_="10m").words()
    assert do("DQ.INFO", "shop")[b"paused"]
    web.act(act="resume", queue="shop")
    assert not do("DQ.INFO", "shop")[b"paused"]
    web.act(act="pause", queue="shop", group="bob")
    assert [group[b"group"] for group in do("DQ.GROUPS", "shop", "STATE", "paused")[1]] == [b"bob"]
    web.act(act="pause", family="mails")
    assert all(do("DQ.INFO", f"mails:{{{n}}}")[b"paused"] for n in range(4))
    assert "4 messages removed" in web.act(act="purge", family="mails", state="ready").words()
    assert "It was retry, and is cancelled" in web.act(act="cancel-one", queue="shop", id="a1").words()
    assert "Not done: it had ended before" in web.act(act="cancel-one", queue="shop", id="a1").words()
    assert "It is pending again" in web.act(act="redrive-one", queue="shop", id="dead").words()
    assert "1 message cancelled" in web.act(act="cancel", queue="shop", state="ready", id="dead").words()
    form = web.get("send", queue="shop")
    sent = web.send(form, payload="hällo", id="test", type="t", group="g", priority="-3", delay="5m")
    assert "Sent, with the id test." in sent.words()
    message = do("DQ.GET", "shop", "test")
    assert (message[b"payload"], message[b"priority"], message[b"group"]) == ("hällo".encode(), -3, b"g")
    assert message[b"state"] == b"delayed"
    assert "Not done: the id is taken" in web.send(form, payload="x", id="test").words()
    count = re.search(r"This is about (\d+) messages", web.get("confirm", act="empty", queue="shop").words())[1]
    assert f"{count} messages removed" in web.act(act="empty", queue="shop").words()
    assert do("DQ.LEN", "shop") == 0


def test_a_schedule_runs_now_as_a_copy_that_is_shown_before(web, r3):
    do = r3.execute_command
    do("DQ.CREATE", "q", "CLOCK", "MANUAL")
    options = ["TYPE", "t", "GROUP", "g", "SCORE", 7.5, "PRIORITY", -3, "HEADERS", 1, "a", "b"]
    do("DQ.SCHEDULE", "q", "full", "EVERY", 1000, "PAYLOAD", "job <b>", *options)
    do("DQ.SCHEDULE", "q", "plain", "EVERY", 1000, "PAYLOAD", "x", "GROUP", "g")
    do("DQ.TICK", "q", "ADVANCE", 1000)
    assert "SCORE" not in web.get("confirm", act="fire", queue="q", schedule="plain").words()
    asked = web.get("confirm", act="fire", queue="q", schedule="full")
    for text in ["copy of full@", "TYPE t", "GROUP g", "SCORE 7.5", "PRIORITY -3", "HEADERS a b", "job <b>", "without them"]:
        assert text in asked.words(), text
    id = re.search(r"with the id (\S+)\.", web.send(asked).words())[1]
    message = do("DQ.GET", "q", id)
    assert (message[b"payload"], message[b"type"], message[b"headers"]) == (b"job <b>", b"t", {b"a": b"b"})
    assert (message[b"group"], message[b"score"], message[b"priority"]) == (b"g", 7.5, -3)


def test_a_schedule_whose_last_message_is_not_there_offers_no_run(web, r3):
    def asked(schedule):
        page = web.get("confirm", act="fire", queue="q", schedule=schedule)
        assert "<form" not in page.text.split("<main>")[1]
        return page.words()

    do = r3.execute_command
    do("DQ.CREATE", "q", "CLOCK", "MANUAL")
    do("DQ.SCHEDULE", "q", "hourly", "EVERY", 3_600_000, "PAYLOAD", "x")
    assert "It cannot run now: the schedule has not sent a message yet" in asked("hourly")
    do("DQ.TICK", "q", "ADVANCE", 3_600_000)
    assert do("DQ.PURGE", "q") == 1
    assert "It cannot run now: the message that the schedule sent last is gone" in asked("hourly")
    assert "no such schedule any more" in asked("nope")


def test_many_messages_are_changed_in_steps(web, r3):
    do = r3.execute_command
    do("DQ.MSEND", "q", 5000, *["x"] * 4990, *["needle"] * 10)
    do("CONFIG", "RESETSTAT")
    assert "This is about 10 messages" in web.get("confirm", act="purge", queue="q", state="ready", payload="n*").words()
    assert "10 messages removed" in web.act(act="purge", queue="q", state="ready", payload="n*").words()
    assert "4990 messages removed" in web.act(act="purge", queue="q", state="ready").words()
    assert r3.info("commandstats")["cmdstat_dq.find"]["calls"] >= 3 * 25


def test_what_makes_no_sense_is_an_error_and_changes_nothing(web, shop):
    before = shop.execute_command("DQ.INFO", "shop")
    for fields in [
        {"act": "fly", "queue": "shop"},
        {"act": "redrive", "queue": "shop", "state": "ready"},
        {"act": "purge", "queue": "shop"},
        {"act": "pause", "queue": "shop", "for": "soon"},
        {"act": "pause"},
    ]:
        web.get("confirm", status=400, **fields)
    assert "no such queue" in web.act(act="pause", queue="nope").words()
    assert not shop.exists("nope")
    for page in ["do", "nope", "stop"]:
        web.get(page, status=404)
    after = shop.execute_command("DQ.INFO", "shop")
    assert {k: v for k, v in after.items() if b"now" not in k and b"age" not in k} == {
        k: v for k, v in before.items() if b"now" not in k and b"age" not in k
    }
