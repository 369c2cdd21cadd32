"""The figures of `dq web`: their history, run times, the server, as JSON, and on the wire."""

import gzip
import http.client
import json
import re
import urllib.parse

import pytest

from tests.harness.server import wait_for
from tests.harness.web import Web, past

pytest_plugins = ["tests.harness.web_fixtures"]
pytestmark = pytest.mark.timeout(600)


def raw(url, path, **headers):
    """The raw answer: status, headers, body."""
    connection = http.client.HTTPConnection(urllib.parse.urlsplit(url).netloc, timeout=30)
    connection.request("GET", "/" + path, headers={name.replace("_", "-"): value for name, value in headers.items()})
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, dict(answer.getheaders()), body


def test_pages_are_packed_for_browsers_that_take_it(start, shop):
    web = start()
    web.visitor().sees("", "shop", "mails:{*}")
    url = web.url
    for path in ["", "queue?queue=shop", "style.css", "dq.js", "api/queues"]:
        plain, packed = raw(url, path), raw(url, path, Accept_Encoding="gzip, br")
        assert packed[1]["content-encoding"] == "gzip" and "content-encoding" not in plain[1], path
        assert len(packed[2]) < len(plain[2]) * 0.6
        assert gzip.decompress(packed[2])[:60] == plain[2][:60]


def test_a_refresh_of_fifty_busy_queues_is_small(start, r3):
    do = r3.execute_command
    for n in range(50):
        do("DQ.SEND", f"queue-of-some-name-{n}", "x")
    web = start()
    web.visitor().sees("", "50 queues", "queue-of-some-name-49")
    _, _, page = raw(web.url, "", Accept_Encoding="gzip")
    version = re.search(rb'data-version="(\d+)"', gzip.decompress(page))[1].decode()
    sizes = []
    for round in range(12):
        for n in range(50):
            do("DQ.MSEND", f"queue-of-some-name-{n}", 2 + (n + round) % 5, *["x"] * (2 + (n + round) % 5))
            do("DQ.FETCH", f"queue-of-some-name-{n}", "COUNT", 1 + n % 3, "NOACK")

        def changed():
            nonlocal version
            _, headers, body = raw(web.url, "", Accept_Encoding="gzip", dq_seen=version)
            text = gzip.decompress(body) if headers.get("content-encoding") == "gzip" else body
            changes = json.loads(text)
            version = str(changes["v"])
            return (len(body), changes) if len(changes["in"]) > 50 else None

        size, changes = wait_for(changed, 20, "a change")
        assert not changes["out"].get("list"), "the list itself is not sent again"
        sizes.append(size)
    assert max(sizes) < 6000 and sum(sizes) / len(sizes) < 3000, sizes


def test_only_what_has_changed_is_sent(start, shop):
    web = start()
    me = web.visitor()
    me.sees("", "shop")
    page = me.get("server")
    version = re.search(r'data-version="(\d+)"', page.text)[1]
    _, headers, body = raw(web.url, "server", dq_seen=version)
    assert headers["content-type"] == "application/json"
    changes = json.loads(body)
    assert changes["out"] == {}
    # A version that is not known brings all parts.
    _, _, body = raw(web.url, "server", dq_seen="999999")
    assert {"place", "lost", "servers"} <= set(json.loads(body)["out"])


def test_the_figures_are_json_for_programs(start, shop):
    web = start()
    me = web.visitor()
    me.sees("", "shop", "mails:{*}")
    told = json.loads(me.get("api/queues").text)
    queues = {queue["queue"]: queue for queue in told["queues"]}
    assert set(queues) == {"shop", *[f"mails:{{{n}}}" for n in range(4)]} and told["lost"] is None
    assert (queues["shop"]["dead"], queues["shop"]["held"], queues["shop"]["paused"]) == (1, 1, False)
    pages = [json.loads(me.get("api/queues", count=2, page=page).text) for page in (1, 2, 3)]
    assert [len(page["queues"]) for page in pages] == [2, 2, 1] and [page["next-page"] for page in pages] == [2, 3, None]
    one = json.loads(me.get("api/queue", queue="shop").text)
    assert one["info"]["backoff"] == "FIXED 60000" and one["schedules"][0]["name"] == "nightly"
    found = json.loads(me.get("api/messages", queue="shop", state="dead", error="*mailbox").text)
    assert [message["id"] for message in found["messages"]] == ["dead"] and found["next"] is None
    assert json.loads(me.get("api/message", queue="shop", id="b1").text)["note"] == "page 7"
    [held] = one["held-groups"]
    assert (held["group"], held["head"], held["why"]["code"]) == ("ann", "a1", "backoff"), held
    assert [(batch["batch"], batch["pending"], batch["held"]) for batch in one["open-batches"]] == [("album", 2, 1)]
    found = json.loads(me.get("api/search", find="dead").text)
    assert [hit["queue"] for hit in found["found"]] == ["shop"] and found["looked-at"] == found["queues"] == 5
    assert found["found"][0]["message"]["state"] == "dead"
    me.get("api/search", status=400)
    history = json.loads(me.get("api/history", span="7d").text)
    assert history == {"span": "7d", "step": 3_600_000, "source": "", "steps": []}, "the first hour is not over"
    me.get("api/history", span="2h", status=400)
    assert json.loads(me.get("api/types", queue="shop").text) == {"since": None, "types": []}
    [error] = json.loads(me.get("api/errors", queue="shop").text)["errors"]
    assert (error["error"], error["count"]) == ("no such mailbox", 1)
    [server] = json.loads(me.get("api/server").text)["servers"]
    assert server["module-loaded"] is True and any("appendonly" in warning for warning in server["warnings"])
    refused = me.get("api/queue", queue="nope", status=404)
    assert json.loads(refused.text) == {"error": "ERR no such queue"}
    me.get("api/nope", status=404)
    me.get("api/messages", queue="shop", state="dead", count=5000, status=400)
    assert me.ask("api/queues", {"csrf": me.get("queue", queue="shop").csrf()}).status == 400, "it only reads"


def test_json_needs_a_login_too(start, tmp_path, shop):
    web = start("--user-header", "X-Forwarded-User")
    assert web.visitor().ask("api/queues").status == 403
    assert web.visitor(X_Forwarded_User="ann").ask("api/queues").status == 200


def test_run_times_are_shown_by_type(web, r3):
    do = r3.execute_command
    do("DQ.CREATE", "q", "CLOCK", "MANUAL", "RETAIN", 10_000_000)
    for kind, took in [("mail", 100), ("mail", 300), ("mail", 5000), ("pdf", 60_000), (None, 20)]:
        do("DQ.SEND", "q", "x", *(["TYPE", kind] if kind else []))
        [[_, receipt, *_]] = do("DQ.FETCH", "q", "LEASE", 100_000)
        do("DQ.TICK", "q", "ADVANCE", took)
        do("DQ.ACK", "q", receipt)
    words = web.get("types", queue="q").words()
    assert "pdf 1 1m0s 1m0s 1m0s 91 % 0 mail 3 300ms" in words and "5.0s 8 % 0 no type 1 20ms" in words
    do("DQ.SEND", "none", "x")
    assert "RETAIN is 0" in web.get("types", queue="none").words()


def test_the_server_shows_how_it_keeps_its_data(start, make_server):
    server = make_server(appendonly="yes", maxmemory="200mb")
    server.client().execute_command("DQ.SEND", "q", "x")
    me = start(url=f"redis://127.0.0.1:{server.port}").visitor()
    page = me.sees("server", "no warnings", "maxmemory 200.0 MiB", "maxmemory-policy noeviction", "appendonly yes")
    assert "late at most 0ms" in page.words() and "role master" in page.words()
    do = server.client().execute_command
    do("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    do("CONFIG", "SET", "appendonly", "no")
    do("CONFIG", "SET", "min-replicas-to-write", 1)
    me.sees("server", "allkeys-lru, so whole queues can be evicted", "appendonly is no", "replicas that a write needs")
    me.sees("", "whole queues can be evicted", "2 more")


def test_a_server_without_the_module_says_so(start, make_server):
    server = make_server(load_module=False)
    web = start(url=f"redis://127.0.0.1:{server.port}")
    web.visitor().sees("", "the dq module is not loaded")
    assert "has not loaded the dq module" in web.log_path.read_text()


def test_a_user_without_the_right_to_info_sees_no_warnings(start, server, shop):
    shop.execute_command(*"ACL SETUSER viewer on >pa55 %R~* -@all +hello +select +scan +dq.info".split())
    try:
        me = start(url=f"redis://viewer:pa55@127.0.0.1:{server.port}").visitor()
        page = me.sees("", "shop")
        assert "appendonly" not in page.words()
        assert "no right to INFO" in me.get("server").words()
    finally:
        shop.execute_command("ACL", "DELUSER", "viewer")


def test_the_history_has_four_spans_and_is_kept_in_a_file(start, r3, tmp_path):
    path = tmp_path / "history"
    r3.execute_command("DQ.SEND", "q", "x")
    path.write_text("damaged\n" + past(None, [0, [7, 5, 2, 9, 4000]]) + past("q", [[3, 1, 0, 2, 0]] * 2))
    me = start("--history", path).visitor()
    for span, each in {"": "1m", "15m": "1m", "24h": "5m", "7d": "1h"}.items():
        words = me.sees("", "History", "compare queues", span=span).words()
        assert f"sent in {each} max 7" in words and "overdue at most max 4.0s" in words, words
    words = me.get("queue", queue="q", span="24h").words()
    assert "sent in 5m max 3" in words and "10m of it are known" in words
    # Lines that are not there yet are no lines at zero.
    [line] = re.findall(r'data-words="([^"]*)"', me.get("queue", queue="q").text)[:1]
    assert line == " ".join(["-"] * 58 + ["3", "3"])
    history = json.loads(me.get("api/history", queue="q", span="24h").text)
    assert (history["step"], [step["sent"] for step in history["steps"]]) == (300_000, [3, 3])
    assert history["steps"][1]["at"] - history["steps"][0]["at"] == 300_000
    assert json.loads(me.get("api/history", queue="nope").text)["steps"] == []
    # A new step of five minutes begins with the program, so the file is written.
    wait_for(lambda: "damaged" not in path.read_text(), what="the file")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["queue"] for line in lines] == [None, b"q".hex()]
    assert lines[0]["grains"][2]["steps"][-2] == [7, 5, 2, 9, 4000]


def test_the_history_is_in_the_data_folder_unless_something_else_is_said(dq, r3, tmp_path):
    r3.execute_command("DQ.SEND", "q", "x")
    for options, files in ([], 1), (["--match", "q*"], 1), (["--no-history"], 0):
        log = tmp_path / f"{files}{len(options)}.log"
        with Web(dq, log, *options) as web:
            web.visitor().sees("", "q")
            wait_for(lambda web=web, files=files: len(list(web.data.glob("dq/web/127-0-0-1-*.history"))) == files, what="the file")
    (tmp_path / "b.data").write_text("a file, not a folder")
    with Web(dq, tmp_path / "b.log") as web:
        web.visitor().sees("", "q")
        assert "not kept over a restart" in web.log_path.read_text()
    assert "No such file" in dq("web", "--history", tmp_path / "no/where", code=1).stderr


def test_eight_queues_are_in_one_picture(start, r3, tmp_path):
    path = tmp_path / "history"
    for n in range(10):
        r3.execute_command("DQ.SEND", f"q{n}", "x")
    path.write_text("".join(past(f"q{n}", [[n, 0, 0, 0, 0]] * 3) for n in range(10)))
    me = start("--history", path).visitor()

    def lines(page):
        """The names of the lines of the first picture."""
        first = re.search(r"<figure.*?</figure>", page.text, re.DOTALL)[0]
        return re.findall(r'data-name="([^"]*)"', first)

    page = me.sees("history", "The queues to which most was sent", "These are the first 8 of 10")
    assert lines(page) == [f"q{n}" for n in range(9, 1, -1)] and "sent in 1m max 9" in page.words()
    page = me.ask("history?pick=q1&pick=q7&pick=q1&span=7d")
    assert lines(page) == ["q1", "q7"] and "sent in 1h max 7" in page.words()
    assert lines(me.ask(page.links()["×"])) == ["q1"], "without the second"
    assert len(lines(me.sees("history", "These are the first 8 of 10", pick="q*"))) == 8
    assert 'data-words="- ' in me.get("history", pick="nothing-of-this-name").text.replace("- - ", "- ")


def test_run_times_of_a_type_are_kept_over_time(start, r3, tmp_path):
    path = tmp_path / "history"
    do = r3.execute_command
    do("DQ.CREATE", "q", "CLOCK", "MANUAL", "RETAIN", 10_000_000)
    path.write_text(past("q", [0, [4, 400, 250]], "mail") + past("q", [[1, 90_000, 90_000]], "pdf"))
    for took in (100, 300):
        do("DQ.SEND", "q", "x", "TYPE", "mail")
        [[_, receipt, *_]] = do("DQ.FETCH", "q", "LEASE", 100_000)
        do("DQ.TICK", "q", "ADVANCE", took)
        do("DQ.ACK", "q", receipt)
    me = start("--history", path).visitor()
    words = me.sees("types", "mail 2", queue="q", span="24h").words()
    assert "run time on the average max 1m30s" in words and "longest run time max 1m30s" in words

    def averages():
        return re.search(r'data-name="mail" data-words="([^"]*)"', me.get("types", queue="q").text)[1].split()

    assert averages()[-2:] in (["0ms", "100ms"], ["100ms", "200ms"])
    # Those two messages are in the minute that goes on, and shown when it is over.
    wait_for(lambda: averages()[-1] == "200ms", 90, "the next minute")
