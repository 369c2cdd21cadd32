"""The pages of `dq web` over HTTP, and their content.

What a person sees in a browser is in test_web_browser.py.
"""

import json
import re

import pytest

from tests.harness.server import wait_for

pytest_plugins = ["tests.harness.web_fixtures"]
pytestmark = pytest.mark.timeout(600)


def test_the_overview_lists_queues_and_families(shop, web):
    page = web.sees("", "shop", "mails:{*}", "4 queues")
    assert "mails:{0}" not in page.words()
    assert web.sees("", "No queue with such a name", q="zzz")
    assert "shop" not in web.get("", q="MAIL").text.split("<main>")[1]
    page = web.sees("family", "Partitions", "mails:{0}", "mails:{3}", family="mails")
    assert page.links()["mails:{0}"] == "queue?queue=mails%3A%7B0%7D"
    web.get("family", family="nope", status=404)


def test_the_overview_has_pages_and_orders(start, r3):
    for n in range(120):
        r3.execute_command("DQ.SEND", f"q{n:03}", "x", *(["TTL", 1] if n == 77 else []))
    wait_for(lambda: r3.execute_command("DQ.LEN", "q077", "dead") == 1, what="the end of its time")
    web = start().visitor()
    web.sees("", "120 queues", "page 1 of 3", "q000", "q049", sort="name")
    page = web.sees("", "page 3 of 3", "q119", page=3, sort="name")
    assert "q000" not in page.words()
    page = web.sees("", "q077", sort="dead")
    assert page.words().index("q077") < page.words().index("q000")
    # Each heading leads to a different order.
    assert {"queue", "ready", "oldest due"} <= set(page.links())
    assert web.get(page.links()["queue"]).words().index("q000") < 700


def test_trouble_comes_first_and_totals_before_it(start, r3):
    do = r3.execute_command
    for name in ("a", "b", "c"):
        do("DQ.CREATE", name, "BACKOFF", "FIXED", 600000)
        do("DQ.MSEND", name, 2, "x", "x", "GROUP", "g")
    for name, words in (("c", ["FATAL"]), ("b", [])):
        do("DQ.NACK", name, do("DQ.FETCH", name)[0][1], *words)
    page = start().visitor().sees("", "3 queues", "3 ready", "1 blocked", "1 dead")
    rows = re.findall(r'<td class="first"><input[^>]*> <a href="queue\?queue=(\w)', page.text)
    assert rows == ["c", "b", "a"], "dead, held, well"
    assert page.links()["1dead"] == "errors"


def test_overdue_work_that_is_blocked_has_an_age_and_comes_first(start, dq, r3):
    do = r3.execute_command
    for name, words in (("dead", ["FATAL"]), ("late", [])):
        do("DQ.CREATE", name, "CLOCK", "MANUAL", "BACKOFF", "FIXED", 600000)
        do("DQ.MSEND", name, 3, "x", "x", "x", "GROUP", "g")
        do("DQ.NACK", name, do("DQ.FETCH", name)[0][1], *words)
    do("DQ.PURGE", "dead", "STATE", "ready")
    do("DQ.TICK", "late", "ADVANCE", 150_000)
    assert do("DQ.INFO", "late")[b"oldest-ready-age"] is None
    web = start().visitor()
    page = web.sees("", "2m30s oldest due")
    assert re.findall(r'<td class="first"><input[^>]*> <a href="queue\?queue=(\w+)', page.text) == ["late", "dead"]
    assert re.search(r'class="n bad"[^>]*data-label="oldest due"[^>]*>2m30s<', page.text)
    assert "the oldest due message has waited 2m30s" in web.get("queue", queue="late").words()
    assert [line.split()[10] for line in dq("ls", "--sort", "trouble").stdout.splitlines()] == ["OLDEST", "2m30s", "-"]


def test_the_page_of_a_queue_shows_everything_about_it(shop, web):
    words = web.get("queue", queue="shop").words()
    for text in [
        "ann blocked 2 0 a1 backoff",  # its group, what holds it
        "1 held",
        "album 0 2 2 0 0 1",  # the batch: ended, of, pending, running, dead, held by it
        "nightly CRON 0 3 * * *",
        "worker-1 1 3 0 2",
        "backoff FIXED 1m",
        "delivered 3",
    ]:
        assert text in words, (text, words)
    settings = re.search(r"Settings (.*) Since it was made (.*) Now (.*)", words)
    assert "lease 30s" in settings[1] and "clock SERVER" in settings[1] and "parents" not in settings[1], settings[1]
    assert "deadto-moved 0" in settings[2] and "parents 0 parked 0" in settings[3], words
    assert "bob running" in web.get("queue", queue="shop", groups="running").words()
    web.get("queue", queue="nope", status=404)
    web.get("queue", status=400)
    shop.set("plain", "text")
    web.get("queue", queue="plain", status=404)


def test_limits_and_what_waits_for_them_or_a_signal_are_shown(web, r3):
    do = r3.execute_command
    do("DQ.CREATE", "q", "CLOCK", "MANUAL", 1000)
    do("DQ.LIMIT", "q", "tokens", "RATE", 1000, "PER", 60_000, "WEIGHT")
    do("DQ.LIMIT", "q", "user-*", "CONCURRENCY", 1)
    for id in ("a", "b"):
        do("DQ.SEND", "q", "x", "ID", id, "LIMITS", 2, "tokens", "user-7", "COST", 600)
    do("DQ.FETCH", "q", "COUNT", 2)
    words = web.get("queue", queue="q").words()
    assert "tokens tokens 1 600 of 1000 (cost) in 1m 1 now user-* user-* 0 of 1 0 user-7" in words, words
    assert "user-7 user-* 1 of 1 0 when another message ends" in words, words
    do("DQ.LIMIT", "q", "tokens", "RATE", 599, "PER", 60_000, "WEIGHT")
    assert "1 never for the first that waits: it costs too much" in web.get("queue", queue="q").words()
    words = web.get("message", queue="q", id="b").words()
    assert "It can never be delivered: it costs 600" in words, words
    assert "By tokens" in words and "limits tokens user-7" in words and "cost 600" in words, words
    do("DQ.SEND", "q", "x", "ID", "c", "PARK")
    assert "It waits for a signal" in web.get("message", queue="q", id="c").words()
    do("DQ.SIGNAL", "q", "c", "DATA", "approved")
    assert "signal approved" in web.get("message", queue="q", id="c").words()


def test_an_open_breaker_is_shown_and_closed(web, r3):
    do = r3.execute_command
    do("DQ.CREATE", "q", "BREAKER", 1, "PER", 60000, "OPEN", 60000)
    do("DQ.MSEND", "q", 2, "a", "b", "GROUP", "partner")
    do("DQ.NACK", "q", do("DQ.FETCH", "q")[0][1])
    words = web.get("queue", queue="q").words()
    assert "1 open breaker" in words and "open, ends in" in words and "breaker-open" in words
    assert "group partner of q goes on" in web.act(act="resume", queue="q", group="partner").words()
    assert do("DQ.INFO", "q")[b"breakers-open"] == 0


def test_messages_are_listed_by_state_with_conditions(web, shop):
    assert "a1" in web.get("messages", queue="shop", state="retry").links()
    for condition in [{"type": "mail"}, {"error": "*mailbox"}, {"header": "tenant", "value": "t1"}, {"since": "1h"}]:
        assert "dead" in web.get("messages", queue="shop", state="dead", **condition).links()
    for condition in [{"type": "x"}, {"id": "z*"}, {"until": "2020-01-01"}]:
        assert "There are no such messages" in web.get("messages", queue="shop", state="dead", **condition).words()
    page = web.get("messages", family="mails", state="ready")
    assert page.text.count('>m</span>') == 4
    web.get("messages", queue="shop", state="asleep", status=400)
    web.get("messages", queue="shop", state="dead", since="soon", status=400)


def test_the_children_of_a_message_are_found(web, r3):
    do = r3.execute_command
    do("DQ.SEND", "videos", "publish", "ID", "v7", "CHILDREN", 2)
    do("DQ.SEND", "videos", "near", "ID", "near", "PARENT", "videos", "v7")
    do("DQ.SEND", "images", "far", "ID", "far", "PARENT", "videos", "v7")
    do("DQ.SEND", "images", "other", "ID", "other")
    page = web.get("messages", queue="images", state="ready", parent="v7", **{"parent-queue": "videos"})
    assert "far" in page.links() and "other" not in page.links()
    assert "near" in web.get("messages", queue="videos", state="ready", parent="v7").links()
    assert "There are no such messages" in web.get("messages", queue="images", state="ready", parent="v7").words()
    assert "name the queue of the parent" in web.get("messages", family="mails", state="ready", parent="v7", status=400).words()


def test_a_parent_shows_its_children_and_they_lead_back(web, r3):
    do = r3.execute_command
    do("DQ.CREATE", "images", "RETRIES", 0, "RETAIN", 60_000)
    do("DQ.SEND", "videos", "publish", "ID", "v7", "CHILDREN", 3)
    do("DQ.SEND", "videos", "near", "ID", "near", "DELAY", 60_000, "PARENT", "videos", "v7")
    for id in ("good", "bad"):
        do("DQ.SEND", "images", "far", "ID", id, "PARENT", "videos", "v7", "TYPE", "scale")
    good, bad = (one[1] for one in do("DQ.FETCH", "images", "COUNT", 2))
    do("DQ.ACK", "images", good, "RESULT", "640x480")
    do("DQ.NACK", "images", bad, "ERROR", "Traceback (most recent call last):\n  File\nValueError: no such <codec>")
    page = web.get("message", queue="videos", id="v7")
    words = page.words()
    ago = r"\S+ ago"
    rows = [f"near videos delayed 0 {ago}", f"good images scale finished 1 {ago} 640x480"]
    rows += [f"bad images scale dead 1 {ago} ValueError: no such <codec> Redrive"]
    for row in ["1 of 3 ended, 1 dead", *rows]:
        assert re.search(row, words), words
    assert web.sees(page.links()["The dead ones"], "bad").links().keys().isdisjoint({"near", "good"})
    child = web.get(page.links()["bad"])
    assert "A child of v7 of videos." in child.words()
    tree = web.get(child.links()["The whole flow"])
    nodes = re.findall(r'level-(\d)"><a href="message\?queue=(\w+)&amp;id=(\w+)', tree.text)
    assert nodes[0] == ("0", "videos", "v7")
    assert sorted(nodes[1:]) == [("1", "images", "bad"), ("1", "images", "good"), ("1", "videos", "near")]
    assert "4 messages: 1 held, " in tree.words() and "v7 held videos, children: 1 of 3 ended, 1 dead" in tree.words()
    assert "publish" in web.get(child.links()["v7"]).words()
    assert "Children" not in child.words() and "A child of" not in words
    assert "It is pending again" in web.act(act="redrive-one", queue="images", id="bad").words()
    assert "bad images scale ready" in web.get("message", queue="videos", id="v7").words()


def test_pages_of_messages_show_each_once(web, r3):
    do = r3.execute_command
    for n in range(60):
        do("DQ.SEND", "q", "x", "ID", f"m{n:02}", "TYPE", "ab"[n % 2])
    for fields, expected in [({}, range(60)), ({"newest": "1"}, range(59, -1, -1)), ({"type": "b"}, range(1, 60, 2))]:
        page, seen = web.get("messages", queue="q", state="ready", **fields), []
        while True:
            seen += re.findall(r">(m\d\d)</span>", page.text)
            following = page.links().get("next page ›")
            if not following:
                break
            page = web.get(following)
        assert seen == [f"m{n:02}" for n in expected]


def test_the_page_of_a_message_tells_its_story(web, shop):
    words = web.get("message", queue="shop", id="dead").words()
    for text in ["no such mailbox", "died: rejected", "delivered to worker-1, attempt 1", "tenant t1", "type mail"]:
        assert text in words, text
    words = web.get("message", queue="shop", id="a2").words()
    assert "behind-head" in words and "By a1" in words
    assert "page 7" in web.get("message", queue="shop", id="b1").words()
    words = web.get("message", queue="shop", id="last").words()
    assert "batch-open" in words and "batch=album pending=2" in words
    web.get("message", queue="shop", id="nope", status=404)


def test_a_payload_is_shown_as_json_text_or_hex(web, shop):
    def shown(**fields):
        return web.get("message", queue="shop", **fields).text.split('id="payload">')[1].split("</pre>")[0]

    assert shown(id="a1") == "{\n  &quot;order&quot;: 12345678901234567890,\n  &quot;total&quot;: 1.10\n}"
    assert shown(id="a1", as_="text").startswith("{&quot;order&quot;")
    assert shown(id="a1", as_="hex").startswith("00000000  7b 22 6f")
    shop.execute_command("DQ.SEND", "shop", bytes(range(256)), "ID", "bytes")
    assert shown(id="bytes").startswith("00000000  00 01 02")
    saved = web.get("payload", queue="shop", id="bytes")
    assert saved.body == bytes(range(256)) and saved.headers["content-disposition"].startswith("attachment")
    shop.execute_command("DQ.SEND", "shop", "x" * 300_000, "ID", "large")
    assert len(web.get("message", queue="shop", id="large").text) < 100_000


def test_the_workers_of_all_queues_are_one_page(start, dq, r3):
    do = r3.execute_command
    for n in range(6):
        do("DQ.SEND", f"q{n % 2}", "x", "ID", f"m{n}")
    for queue, name in (("q0", "w-both"), ("q1", "w-both"), ("q1", "w-one")):
        do("DQ.FETCH", queue, "CONSUMER", name)
    do("DQ.FETCH", "q0")
    do("DQ.ACK", "q1", do("DQ.FETCH", "q1", "CONSUMER", "w-one")[0][1])
    web = start().visitor()
    web.sees("", "2 queues")
    page = web.sees("workers", "3 consumers")
    words = page.words()
    assert re.search(r"w-both q0 , q1 2 2 0 0 \S+ ago m\d \S+ ago, q\d m\d \S+ ago, q\d", words), words
    assert re.search(r"w-one q1 1 2 1 (0.0/s )?0 (0.0/s )?\S+ ago m3 \S+ ago", words), words
    assert "(without a name) q0" in words and page.links()["m3"] == "message?queue=q1&id=m3"
    assert "w-both" not in web.get("workers", q="ONE").words()
    told = json.loads(web.get("api/workers").text)
    assert {one["worker"]: one["running"] for one in told} == {"w-both": 2, "w-one": 1, "": 1}
    lines = dq("workers", "--rates", "100ms").stdout.splitlines()
    assert lines[0].split()[:6] == ["WORKER", "RUNNING", "LONGEST", "MESSAGE", "QUEUE", "ACKED"] and len(lines) == 4
    assert {one["worker"] for one in json.loads(dq("workers", "q0", "--json").stdout)} == {"w-both", ""}


def test_the_schedules_of_all_queues_are_one_page(web, r3):
    do = r3.execute_command
    for name, every in (("late", 9_000_000), ("soon", 1_000_000)):
        do("DQ.SCHEDULE", f"of-{name}", name, "EVERY", every, "PAYLOAD", "x")
    web.sees("", "2 queues")
    words = web.get("schedules").words()
    assert words.index("soon of-soon EVERY 1000000") < words.index("late of-late EVERY"), words
    assert "late" not in web.get("schedules", q="SOON").words()


def test_what_never_goes_on_is_trouble_with_an_age(start, dq, r3):
    do = r3.execute_command
    do("DQ.CREATE", "jobs", "RETRIES", 0)
    do("DQ.SEND", "jobs", "x", "ID", "parent", "CHILDREN", 1)
    do("DQ.SEND", "jobs", "x", "ID", "child", "PARENT", "jobs", "parent")
    do("DQ.SEND", "jobs", "x", "BATCH", "b"), do("DQ.SEND", "jobs", "x", "AFTER", "b")
    for _, receipt, *_ in do("DQ.FETCH", "jobs", "COUNT", 9):
        do("DQ.NACK", "jobs", receipt)
    do("DQ.SEND", "asks", "x", "PARK"), do("DQ.SEND", "asks", "x", "PARK", "FOR", 60_000)
    do("DQ.CREATE", "stops", "RETRIES", 0, "DEADTO", "lost")
    do("SET", "lost", "x")
    do("DQ.SEND", "stops", "x"), do("DQ.NACK", "stops", do("DQ.FETCH", "stops")[0][1])
    do("DQ.SEND", "fine", "x")
    text = dq("ls", "--sort", "trouble").stdout
    for queue, trouble in [("jobs", "held by dead children, "), ("jobs", "held by a batch with dead messages, "),
                           ("asks", "parked without an end, "), ("stops", "DEADTO stopped: ")]:
        assert re.search(rf"(?m)^{queue} .*{trouble}", text), text
    assert text.splitlines()[-1].startswith("fine ") and text.splitlines()[-1].endswith(" -")
    web = start().visitor()
    page = web.sees("", "4 held", "held by dead children, ", "parked without an end, ", "DEADTO stopped: ", "4 in trouble")
    assert re.findall(r'href="queue\?queue=(\w+)"', page.text)[-1] == "fine"
    assert "go on when what is dead is redriven" in web.get("queue", queue="jobs").words()
    told = json.loads(web.get("api/queues").text)["queues"]
    assert {queue["queue"]: sorted(one["code"] for one in queue["trouble"]) for queue in told} == {
        "asks": ["parked"], "fine": [], "jobs": ["dead-batch", "dead-child"], "stops": ["deadto"],
    }
    do("DQ.REDRIVE", "jobs", "ALL")
    assert "dead" not in dq("ls", "jobs").stdout.splitlines()[1]
