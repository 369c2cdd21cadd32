"""The forms of `dq web` for the settings of a queue and for its named limits."""

import re

import pytest

pytest_plugins = ["tests.harness.web_fixtures"]
pytestmark = pytest.mark.timeout(600)


def test_settings_are_changed(start, r3):
    do = r3.execute_command
    do("DQ.CREATE", "q", "LEASE", 90_000, "BACKOFF", "EXP", 1000)
    me = start()
    web = me.visitor()
    form = web.get(web.get("queue", queue="q").links()["Change settings"])
    now = dict(re.findall(r'<input name="(\w+)" value="([^"]*)"', form.text))
    assert (now["lease"], now["backoff"], now["retries"]) == ("1m30s", "EXP 1s", "3")
    assert "no field has another value" in web.send(form, **now).words()
    refused = web.send(form, **{**now, "lease": "soon", "retries": "7"})
    assert "Not done" in refused.words() and 'value="soon"' in refused.text and 'value="7"' in refused.text
    asked = web.send(form, **{**now, "lease": "2m", "onretry": "SKIP"})
    assert "setting now then lease 1m30s 2m onretry BLOCK SKIP" in asked.words() and do("DQ.INFO", "q")[b"lease"] == 90_000
    done = web.send(form, sure=1, **{**now, "lease": "2m", "retries": "-1", "rate": "10 PER 1m", "backoff": "LINEAR 5s"})
    changed = (
        "Changed: lease, retries, backoff, rate. lease was 1m30s and is 2m; retries was 3 and is -1; "
        "backoff was EXP 1s and is LINEAR 5s; rate was nothing and is 10 PER 1m."
    )
    assert changed in done.words() and me.audit()[-1]["outcome"] == changed
    info = do("DQ.INFO", "q")
    assert (info[b"lease"], info[b"retries"], info[b"rate"], info[b"backoff"]) == (120_000, -1, b"10 PER 60000", b"LINEAR 5000")
    assert do("DQ.INFO", "q")[b"maxlen"] == 0
    web.send(web.get("settings", queue="q"), rate="", deadto="lost retries", events="log", sure=1)
    info = do("DQ.INFO", "q")
    assert (info[b"deadto"], info[b"events"]) == (b"lost retries", b"log")
    assert do("DQ.INFO", "q")[b"rate"] in (None, b"0", b"")
    assert [line["action"] for line in me.audit()][:1] == ["change settings"]


def test_a_field_of_the_settings_sets_no_other_option(web, r3):
    do = r3.execute_command
    do("DQ.CREATE", "q", "LEASE", 90_000)
    before = do("DQ.INFO", "q")
    form = web.get("settings", queue="q")
    for field, typed in [
        ("lease", "1s EVENTS other"),
        ("lease", "1000"),
        ("maxlen", "5 DEADTO other"),
        ("onretry", "SKIP EVENTS other"),
        ("backoff", "EXP 1s EVENTS other"),
        ("rate", "0 EVENTS other"),
        ("breaker", "0 DEADTO other"),
        ("deadto", "lost EVENTS other"),
        ("events", "log EVENTSLEN"),
    ]:
        refused = web.send(form, sure=1, **{field: typed})
        assert f"Not done: {field}: " in refused.words(), (field, refused.words())
    after = do("DQ.INFO", "q")
    assert {**after, b"now": 0} == {**before, b"now": 0}


def test_limits_are_made_changed_and_removed(start, r3):
    do = r3.execute_command
    do("DQ.CREATE", "q")
    me = start()
    web = me.visitor()
    form = web.get(web.get("queue", queue="q").links()["New limit"])
    assert "say how many may run" in web.send(form, limit="api", counts="messages").words()
    # A field sets no other option.
    for field, typed in [
        ("concurrency", "5 WEIGHT"),
        ("concurrency", "5 RATE 7 PER 1s"),
        ("rate", "7 PER 1s WEIGHT"),
        ("rate", "7 PER 1s CONCURRENCY 5"),
        ("rate", "7 PER 1s, CONCURRENCY 5"),
    ]:
        refused = web.send(form, limit="api", counts="messages", **{field: typed})
        assert f"Not done: {field}: write n" in refused.words(), (field, refused.words())
    assert do("DQ.LIMITS", "q")[1] == []
    done = web.send(form, limit="api", concurrency="5", rate="100 PER 1m, 7 PER 1s", counts="costs")
    assert "The limit api was nothing and is CONCURRENCY 5 RATE 100 PER 1m RATE 7 PER 1s WEIGHT." in done.words()
    [limit] = do("DQ.LIMITS", "q")[1]
    assert (limit[b"concurrency"], limit[b"weight"]) == (5, 1)
    form = web.get(done.links()["api"])
    assert 'value="100 PER 1m, 7 PER 1s"' in form.text and 'value="5"' in form.text
    web.send(form, limit="api", concurrency="6", rate="", counts="messages")
    assert me.audit()[-1]["outcome"] == "The limit api was RATE 100 PER 1m RATE 7 PER 1s CONCURRENCY 5 WEIGHT and is CONCURRENCY 6."
    removed = web.send(web.get(form.links()["Remove"]))
    assert "it was CONCURRENCY 6" in removed.words() and do("DQ.LIMITS", "q")[1] == []
