"""Actions on the present page of `dq web`: on marked messages, at their lines, and with forms."""

import html
import json
import re
import urllib.parse
import urllib.request

import pytest

from tests.harness.server import wait_for
from tests.harness.web import Page

pytest_plugins = ["tests.harness.web_fixtures"]
pytestmark = pytest.mark.timeout(600)


def press(web, page, words, n=0):
    """Presses a button for an immediate action. Returns the page that it leads to."""
    found = re.findall(rf'formaction="([^"]*)"[^>]*>{words}</button>', page.text)
    assert found, (words, page.words())
    return web.ask(html.unescape(found[n]), {"csrf": page.csrf()})


def mark(web, page, words, *ids):
    """Marks messages of a list, and presses one of the buttons for them: the page that asks."""
    picks = [html.unescape(pick) for pick in re.findall(r'name="pick" value="([^"]*)"', page.text)]
    wanted = [pick for pick in picks if pick.rsplit("=", 1)[1] in ids]
    assert len(wanted) == len(ids), (picks, ids)
    address = re.search(rf'formaction="(confirm[^"]*)"[^>]*>{words}</button>', page.text)[1]
    return send(web, html.unescape(address), [("csrf", page.csrf()), *[("pick", pick) for pick in wanted]])


def send(web, address, fields):
    """Sends a form whose fields may come several times."""
    request = urllib.request.Request(urllib.parse.urljoin(web.url, address), urllib.parse.urlencode(fields).encode())
    with web.opener.open(request, timeout=30) as response:
        return Page(response)


def agree(web, asked):
    """Sends the question about marked messages."""
    picks = [("pick", html.unescape(pick)) for pick in re.findall(r'type="hidden" name="pick" value="([^"]*)"', asked.text)]
    return send(web, asked.form(), [("csrf", asked.csrf()), *picks])


def dead(do, ids):
    for id in ids:
        do("DQ.SEND", "q", "x", "ID", id)
    for _, receipt, *_ in do("DQ.FETCH", "q", "COUNT", 100):
        do("DQ.NACK", "q", receipt, "FATAL")


def test_marked_messages_are_redriven_cancelled_and_removed(start, r3):
    do = r3.execute_command
    do("DQ.CREATE", "q", "RETAIN", 60000)
    dead(do, [f"m{n}" for n in range(6)])
    me = start()
    web = me.visitor()
    page = web.get("messages", queue="q", state="dead")
    asked = mark(web, page, "Redrive", "m1", "m3")
    assert "2 messages of q: m1, m3" in asked.words() and do("DQ.LEN", "q", "dead") == 6
    done = agree(web, asked)
    assert "2 messages: redrive" in done.words() and "dead messages of q" in done.words()
    assert sorted(do("DQ.LIST", "q", "dead", "IDS")[1]) == [b"m0", b"m2", b"m4", b"m5"]
    asked = mark(web, page, "Redrive", "m1", "m2")
    assert "1 message: redrive; 1 not: it is not dead any more" in agree(web, asked).words()
    agree(web, mark(web, page, "Remove", "m0", "m4"))
    assert do("DQ.LIST", "q", "dead", "IDS")[1] == [b"m5"] and do("DQ.GET", "q", "m0") is None
    agree(web, mark(web, page, "Cancel", "m5"))
    assert do("DQ.GET", "q", "m5")[b"state"] == b"cancelled"
    lines = wait_for(lambda: (lines := me.audit()) and len(lines) == 4 and lines, what="the audit log")
    assert lines[0]["action"] == "redrive" and lines[0]["what"] == "2 messages of q: m1, m3"
    refused = web.ask("confirm?act=redrive-one", {"csrf": "x", "pick": "queue=q&id=m5"})
    assert refused.status == 403


def test_a_question_has_the_word_of_its_button(web, r3):
    dead(r3.execute_command, ["m"])
    pages = [web.get("queue", queue="q"), web.get("messages", queue="q", state="dead"), web.get("message", queue="q", id="m")]
    asked = 0
    for page in pages:
        for words, address in page.links().items():
            if address.startswith("confirm?"):
                heading = re.search("<h1>(.*?)</h1>", web.get(address).text)[1].rstrip("?")
                assert words.startswith(heading), (words, heading)
                asked += 1
    assert asked >= 8


def test_a_message_that_waits_for_a_signal_gets_one(web, r3):
    do = r3.execute_command
    do("DQ.SEND", "q", "x", "ID", "a", "PARK")
    do("DQ.SEND", "q", "x", "ID", "b", "DELAY", 60_000)
    assert "Send signal" not in web.get("message", queue="q", id="b").links()
    form = web.get(web.get("message", queue="q", id="a").links()["Send signal"])
    assert "A signal to message a of q" in form.words()
    done = web.send(form, data="yes,\r\nsaid the boss")
    assert "It has got the signal." in done.words()
    assert do("DQ.GET", "q", "a")[b"signal"] == b"yes,\nsaid the boss"
    assert "Send signal" not in web.get("message", queue="q", id="a").links()
    do("DQ.CANCEL", "q", "a")
    assert "it has ended or is gone" in web.send(form, data="").words()


def test_a_message_is_run_now_rescheduled_and_edited(web, r3):
    do = r3.execute_command
    do("DQ.SEND", "q", "line 1\nline 2", "ID", "m", "DELAY", 3_600_000)
    page = web.get("message", queue="q", id="m")
    done = press(web, page, "Run now")
    assert "It is due now." in done.words() and "message" in done.address
    assert do("DQ.GET", "q", "m")[b"state"] == b"ready"
    form = web.get(done.links()["Reschedule"])
    done = web.send(form, delay="tomorrow")
    assert "Not done: delay: write a time as" in done.words() and 'value="tomorrow"' in done.text
    assert "not both" in web.send(form, delay="1h", at="2026-11-20").words()
    done = web.send(form, delay="2h")
    assert "It has another due time." in done.words() and do("DQ.GET", "q", "m")[b"state"] == b"delayed"
    form = web.get(done.links()["Edit payload"])
    assert "<textarea" in form.text and "line 1\nline 2</textarea>" in form.text
    # A browser sends a line break as two bytes.
    done = web.send(form, payload="line 1\r\nline 3\r\n")
    assert do("DQ.GET", "q", "m")[b"payload"] == b"line 1\nline 3\n"
    do("DQ.SEND", "q", b"\xff\x00", "ID", "bytes", "DELAY", 1000)
    assert "Edit payload" not in web.get("message", queue="q", id="bytes").links()


def test_a_message_is_duplicated(web, r3):
    do = r3.execute_command
    do("DQ.SEND", "q", "hello", "ID", "m", "TYPE", "t", "GROUP", "g", "HEADERS", 2, "a", "1", "b", "x: y")
    form = web.get(web.get("message", queue="q", id="m").links()["Duplicate"])
    for text in ['value="t"', 'value="g"', "hello</textarea>", "a: 1\nb: x: y</textarea>"]:
        assert text in form.text, text
    done = web.send(form, payload="changed", type="t", group="g", headers="a: 1\r\nb: x: y\r\n")
    id = re.search(r"with the id (\S+)\.", done.words())[1]
    message = do("DQ.GET", "q", id)
    assert (message[b"payload"], message[b"headers"]) == (b"changed", {b"a": b"1", b"b": b"x: y"})
    do("DQ.SEND", "q", b"\xff\x00", "ID", "bytes", "TYPE", "t")
    done = web.act(act="duplicate", queue="q", id="bytes")
    id = re.search(r"with the id (\S+)\.", done.words())[1]
    assert do("DQ.GET", "q", id)[b"payload"] == b"\xff\x00"


def test_a_lease_is_ended(web, r3):
    do = r3.execute_command
    do("DQ.SEND", "q", "x", "ID", "m")
    [[_, receipt, *_]] = do("DQ.FETCH", "q", "CONSUMER", "stuck-1")
    page = web.get("messages", queue="q", state="running")
    assert "consumer since" in page.words() and "stuck-1" in page.words()
    assert "Its lease has ended." in web.act(act="end-lease", queue="q", id="m").words()
    message = do("DQ.GET", "q", "m")
    assert (message[b"state"], message[b"failures"]) == (b"ready", 0)
    assert do("DQ.ACK", "q", receipt) == 0
    assert "Not done: it is not running any more" in web.act(act="end-lease", queue="q", id="m").words()


def test_consumers_show_what_they_hold(web, r3):
    do = r3.execute_command
    do("DQ.MSEND", "q", 5, *"abcde")
    do("DQ.FETCH", "q", "COUNT", 4, "CONSUMER", "w1")
    [[id, *_]] = do("DQ.FETCH", "q", "CONSUMER", "w2")
    page = web.get("queue", queue="q")
    lines = re.findall(r"<tr><td class=\"first\">.*?(w\d)</span></td>(.*?)</tr>", page.text, re.DOTALL)
    held = {name: re.findall(r'href="message[^"]*id=([^"&]*)"', line) for name, line in lines}
    assert held["w2"] == [id.decode()] and len(held["w1"]) == 3
    assert "all that run" in dict(lines)["w1"]


def test_a_group_is_resumed_at_its_line(web, r3):
    do = r3.execute_command
    do("DQ.CREATE", "q", "ONDEAD", "BLOCK")
    do("DQ.SEND", "q", "x", "ID", "first", "GROUP", "g")
    do("DQ.SEND", "q", "x", "ID", "second", "GROUP", "g")
    do("DQ.SEND", "q", "x", "ID", "other", "GROUP", "paused")
    do("DQ.PAUSE", "q", "GROUP", "paused")
    do("DQ.NACK", "q", do("DQ.FETCH", "q")[0][1], "FATAL")
    page = web.get("queue", queue="q")
    # Both groups that need attention are shown by default.
    assert "g blocked 1 0 second behind-head" in page.words() and "paused paused" in page.words()
    assert page.links()["first"] == "message?queue=q&id=first"
    press(web, page, "Redrive")
    assert do("DQ.GET", "q", "first")[b"state"] == b"ready"
    do("DQ.NACK", "q", do("DQ.FETCH", "q")[0][1], "FATAL")
    done = press(web, web.get("queue", queue="q"), "Resume")
    assert "group g of q goes on" in done.words() and "queue?queue=q" in done.address
    assert do("DQ.FETCH", "q")[0][0] == b"second"
    done = press(web, web.get("queue", queue="q"), "Resume")
    assert "group paused of q goes on" in done.words()
    assert do("DQ.GROUPS", "q", "STATE", "paused")[1] == []


def test_schedules_are_made_and_removed(web, r3):
    do = r3.execute_command
    do("DQ.CREATE", "q")
    form = web.get(web.get("queue", queue="q").links()["New schedule"])
    typed = {"name": "nightly", "cron": "0 3 * *", "payload": "report <b>", "type": "t"}
    refused = web.send(form, **typed)
    assert "Not done" in refused.words() and "fields" in refused.words()
    for text in ('value="nightly"', 'value="0 3 * *"', "report &lt;b&gt;</textarea>"):
        assert text in refused.text, "what was typed is kept"
    assert "cron rule or an interval" in web.send(form, name="x", payload="x").words()
    done = web.send(form, **{**typed, "cron": "0 3 * * *", "tz": "Europe/Berlin", "overlap": "SKIP"})
    assert "The schedule nightly sends first at" in done.words()
    web.send(form, name="often", every="5m", payload="x")
    rules = {one[b"name"]: one[b"definition"] for one in do("DQ.SCHEDULES", "q")}
    assert b"0 3 * * *" in rules[b"nightly"] and b"300000" in rules[b"often"]
    assert "The schedule often is removed." in web.act(act="unschedule", queue="q", schedule="often").words()
    assert len(do("DQ.SCHEDULES", "q")) == 1


def test_schedules_have_limits_and_are_paused_at_their_line(web, r3):
    do = r3.execute_command
    do("DQ.CREATE", "q")
    form = web.get("schedule", queue="q")
    typed = {"name": "tick", "every": "1m", "payload": "x", "times": "3"}
    for wrong in ({"until": "soon"}, {"jitter": "much"}, {"times": "many"}):
        refused = web.send(form, **{**typed, **wrong})
        assert "Not done" in refused.words() and f'value="{[*wrong.values()][0]}"' in refused.text
    sent = web.send(form, **{**typed, "until": "2100-01-01", "jitter": "90s"})
    assert "The schedule tick sends first at" in sent.words()
    page = web.get("queue", queue="q")
    assert "EVERY 60000, until 2100-01-01 00:00:00.000Z, 3 times more, up to 1m30s later" in page.words()
    paused = press(web, page, "Pause", -1)
    assert "The schedule tick is paused." in paused.words()
    [one] = do("DQ.SCHEDULES", "q")
    assert one[b"paused"] is True and (one[b"until"], one[b"times"], one[b"jitter"]) == (4_102_444_800_000, 3, 90_000)
    assert json.loads(web.get("api/queue", queue="q").text)["schedules"][0]["paused"] is True
    assert "The schedule tick goes on." in press(web, paused, "Resume").words()
    assert do("DQ.SCHEDULES", "q")[0][b"paused"] is False
    do("DQ.UNSCHEDULE", "q", "tick")
    assert "Not done: no schedule with the name tick" in press(web, paused, "Resume").words()


def test_a_queue_is_deleted_after_a_count(web, r3):
    do = r3.execute_command
    do("DQ.MSEND", "q", 3, *"abc")
    asked = web.get(web.get("queue", queue="q").links()["Delete queue"])
    assert "This is about 3 messages" in asked.words() and r3.exists("q")
    done = web.send(asked)
    assert not r3.exists("q") and "q is deleted" in done.words() and done.address.startswith(f"{web.url}?done=")
    do("DQ.CREATE", "empty")
    assert "empty is deleted" in web.act(act="delete", queue="empty").words()
    r3.set("plain", "text")
    web.get("confirm", act="delete", queue="plain", status=404)
    assert r3.exists("plain")


def test_a_form_that_is_refused_keeps_what_was_typed(web, r3):
    r3.execute_command("DQ.SEND", "q", "x", "ID", "taken")
    form = web.get("send", queue="q")
    for typed, why in [({"delay": "tomorrow"}, "write a time"), ({"id": "taken"}, "the id is taken"), ({"headers": "x"}, "headers")]:
        refused = web.send(form, payload="precious <b>", **typed)
        assert "Not done" in refused.words() and why in refused.words()
        assert "precious &lt;b&gt;</textarea>" in refused.text
        assert all(value in refused.text for value in typed.values())
    assert r3.execute_command("DQ.LEN", "q") == 1


def test_a_message_is_found_by_its_id_in_any_queue(web, r3):
    do = r3.execute_command
    for n in range(40):
        do("DQ.SEND", f"q{n}", "x", "ID", "everywhere" if n < 2 else f"only-{n}")
    web.sees("", "40 queues")
    assert web.get("search", find="only-33").address.endswith("message?queue=q33&id=only-33")
    page = web.get("search", find="everywhere")
    assert set(re.findall(r"message\?queue=(q\d+)&amp;id=everywhere", page.text)) == {"q0", "q1"}
    assert "There are no such messages" in web.get("search", find="nope").words()


def test_what_was_done_is_shown_on_the_page_where_it_was_asked(web, shop):
    page = web.get("messages", queue="shop", state="dead", type="mail")
    asked = web.get(page.links()["Redrive all that match"])
    assert asked.links().get("No, go back") == "messages?queue=shop&state=dead&type=mail"
    done = web.send(asked)
    assert "1 message pending again" in done.words() and "type=mail" in done.address and "done=" in done.address
    # The next action leads back without the outcome of this one.
    again = web.get(web.get("messages", queue="shop", state="ready").links()["Cancel all"])
    assert "done" not in again.links()["No, go back"]
    for back in ["https://evil.example/", "//evil.example", "/queue?queue=q", "javascript:alert(1)", "do?act=empty&queue=shop"]:
        asked = web.get("confirm", act="pause", queue="shop", back=back)
        assert asked.links()["No, go back"] == "queue?queue=shop", back


def test_messages_of_a_state_are_listed_over_all_queues(web, r3):
    do = r3.execute_command
    for n in range(6):
        do("DQ.CREATE", f"q{n}", "BACKOFF", "FIXED", 3_600_000)
        for i in range(10):
            do("DQ.SEND", f"q{n}", "x", "ID", f"m{n}{i}")
        for _, receipt, *_ in do("DQ.FETCH", f"q{n}", "COUNT", 10 if n % 2 else 1):
            do("DQ.NACK", f"q{n}", receipt, "ERROR", f"HTTP 50{n}")
    assert '<a class="tile " href="messages?state=retry"><b>33</b><span>later' in web.sees("", "33 later", "6 queues").text
    first = web.get("messages", state="retry")
    assert "retry messages of all queues" in first.words()
    # Whole queues, by name, until a page is full.
    shown = re.findall(r"message\?queue=q(\d)&amp;id=m\d\d", first.text)
    assert shown == [*"0", *"1" * 10, *"2", *"3" * 10, *"4", *"5" * 10]
    asked = web.get(web.get("messages", state="retry", queues="q[13]").links()["Cancel all"])
    assert "This is about 20 messages" in asked.words() and "messages of q[13]: retry" in asked.words()
    # Marked messages of several queues are changed together.
    agree(web, mark(web, first, "Run now", "m00", "m11"))
    assert (do("DQ.LEN", "q0", "ready"), do("DQ.LEN", "q1", "ready")) == (10, 1)
    for i in range(10):
        do("DQ.SEND", "q6", "x", "ID", f"m6{i}")
    web.sees("", "7 queues")
    ready = web.get("messages", state="ready")
    assert sorted(set(re.findall(r"message\?queue=(q\d)", ready.text))) == ["q0", "q1", "q2", "q4"]
    following = ready.links()["next page ›"]
    assert "from=q6" in following
    assert set(re.findall(r"message\?queue=(q\d)", web.get(following).text)) == {"q6"}
    # Removes queues, or their dead messages.
    do("DEL", "q0", "q6")
    assert "q1" in web.get("messages", state="ready").text
    assert "There are no such messages" in web.get(following).words()
    assert "There are no such messages" in web.get("messages", state="dead").words()
    web.get("messages", state="nonsense", status=400)


def test_a_note_of_progress_is_a_bar(web, r3):
    do = r3.execute_command
    for note in ("page 7 of 20", "charged"):
        do("DQ.SEND", "q", "x", "ID", note.split()[0])
        do("DQ.TOUCH", "q", 60_000, do("DQ.FETCH", "q")[0][1], "NOTE", note)
    found = web.get("messages", queue="q", state="running").text
    assert found.count("<progress") == 1 and '<progress max="100" value="35"' in found
    assert 'value="35"' in web.get("message", queue="q", id="page").text
    assert "<progress" not in web.get("message", queue="q", id="charged").text


def test_messages_are_found_in_all_states_of_many_queues(start, r3):
    do = r3.execute_command
    for queue in ("a1", "a2", "b1"):
        do("DQ.CREATE", queue, "RETRIES", 0)
        for n, group in enumerate(["user-7", "user-8"]):
            do("DQ.SEND", queue, "x", "ID", f"{queue}-{n}", "GROUP", group, "TYPE", "mail")
    do("DQ.NACK", "a2", do("DQ.FETCH", "a2")[0][1], "ERROR", "HTTP 500")
    me = start()
    web = me.visitor()
    web.sees("", "3 queues")
    form = web.get("messages")
    assert form.words().startswith("dq Queues Find Errors Workers Schedules Server") and "There are no such" not in form.words()

    def shown(**fields):
        return sorted(re.findall(r">(\w\d-\d)</span>", web.get("messages", **fields).text))

    assert shown(group="user-7") == ["a1-0", "a2-0", "b1-0"]
    assert shown(group="user-7", queues="a*") == ["a1-0", "a2-0"]
    assert shown(state="dead", type="mail") == ["a2-0"]
    assert shown(id="b1-*") == ["b1-0", "b1-1"]
    found = web.get("messages", group="user-7")
    assert "3 of 4 queues and states" not in found.words() and "a2-0 a2 dead mail" in found.words()
    agree(web, mark(web, found, "Redrive", "a2-0"))
    assert do("DQ.GET", "a2", "a2-0")[b"state"] == b"ready"
    done = web.send(web.get(found.links()["Cancel all that match"]))
    assert "3 messages cancelled" in done.words() and do("DQ.LEN", "b1", "ready") == 1
    lines = [line["what"] for line in me.audit()]
    assert lines[-1] == "messages of all queues: any, group user-7"
