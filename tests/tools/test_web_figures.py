"""The figures of `dq web`: of the last day, of run times, of the server, as JSON, and on the wire."""

import gzip
import http.client
import json
import re
import urllib.parse

import pytest

from tests.harness.server import wait_for
from tests.harness.web import Web

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
    day = json.loads(me.get("api/day").text)
    assert (day["step"], day["source"]) == (300_000, "") and day["steps"][-1]["waiting"] > 0
    assert day["steps"][-1]["at"] % 300_000 == 0
    assert json.loads(me.get("api/day", queue="nope").text)["steps"] == []
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


def test_the_last_day_is_kept_in_a_file(dq, r3, tmp_path):
    path = tmp_path / "history"
    r3.execute_command("DQ.SEND", "q", "x")
    with Web(dq, tmp_path / "a.log", "--history", path) as web:
        web.visitor().sees("", "q")
        wait_for(lambda: path.read_text(), what="the file")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert lines[0]["queue"] is None and 1 <= len(lines[0]["steps"]) <= 2
    # An hour ago something was sent.
    lines[0]["newest"] -= 12
    lines[0]["steps"] = [[7, 5, 2, 9, 4000]] * 3
    path.write_text("damaged\n" + "".join(json.dumps(line) + "\n" for line in lines))
    with Web(dq, tmp_path / "b.log", "--history", path) as web:
        page = web.visitor().sees("", "The last day")
        assert "sent in 5 minutes max 7" in page.words() and "overdue at most max 4.0s" in page.words()
    assert "No such file" in dq("web", "--history", tmp_path / "no/where", code=1).stderr
