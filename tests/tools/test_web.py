"""`dq web` over HTTP: its pages, what they change, who may see them, and hostile names and payloads.

What a person sees in a browser is in test_web_browser.py.
"""

import json
import re
import subprocess
import urllib.parse

import pytest

from tests.harness.cli import Cli
from tests.harness.server import wait_for
from tests.harness.web import Web

pytest_plugins = ["tests.harness.cli_fixtures"]
pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def start(program, server, tmp_path):
    """Starts dq web on the shared server, or on the server of a URL: start("--read-only")."""
    running = []

    def start(*options, url=None, before=()):
        cli = Cli(program, url or f"redis://127.0.0.1:{server.port}")
        web = Web(cli, tmp_path / f"web-{len(running)}.log", *options, before=before)
        running.append(web)
        return web.__enter__()

    yield start
    for web in running:
        web.__exit__()


@pytest.fixture
def web(start):
    return start().visitor()


def audit(web):
    return [json.loads(line) for line in web.log_path.read_text().splitlines() if line.startswith("{")]


@pytest.fixture
def shop(r3):
    """A queue with a held group, a running message with a note, a dead one, a batch and a schedule; two families."""
    do = r3.execute_command
    do("DQ.CREATE", "shop", "BACKOFF", "FIXED", 60000, "RETAIN", 60000)
    for id, group in [("a1", "ann"), ("a2", "ann"), ("b1", "bob")]:
        do("DQ.SEND", "shop", '{"order": 12345678901234567890, "total": 1.10}', "ID", id, "GROUP", group)
    do("DQ.SEND", "shop", "x", "ID", "dead", "TYPE", "mail", "HEADERS", 1, "tenant", "t1")
    for id, receipt, *_ in do("DQ.FETCH", "shop", "COUNT", 10, "CONSUMER", "worker-1"):
        if id == b"dead":
            do("DQ.NACK", "shop", receipt, "FATAL", "ERROR", "no such mailbox")
        if id == b"a1":
            do("DQ.NACK", "shop", receipt, "ERROR", "HTTP 500")
        if id == b"b1":
            do("DQ.TOUCH", "shop", 60000, receipt, "NOTE", "page 7")
    do("DQ.MSEND", "shop", 2, "1", "2", "BATCH", "album")
    do("DQ.SEND", "shop", "publish", "ID", "last", "AFTER", "album")
    do("DQ.SCHEDULE", "shop", "nightly", "CRON", "0 3 * * *", "PAYLOAD", "x")
    for key in do("DQ.PARTITIONS", "mails", 4):
        do("DQ.SEND", key, "x", "ID", "m")
    return r3


# ---- what the pages show


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
    web.sees("", "120 lines", "page 1 of 3", "q000", "q049")
    page = web.sees("", "page 3 of 3", "q119", page=3)
    assert "q000" not in page.words()
    page = web.sees("", "q077", sort="dead")
    assert page.words().index("q077") < page.words().index("q000")


def test_the_page_of_a_queue_shows_everything_about_it(shop, web):
    words = web.get("queue", queue="shop").words()
    for text in [
        "ann blocked 2 0 a1 backoff",  # its group, what holds it
        "1 held",
        "album 0 2 2 0 0 1",  # the batch: ended, of, pending, running, dead, held by it
        "nightly CRON 0 3 * * *",
        "worker-1 1 3 0 2",
        "backoff FIXED 60000",
        "delivered 3",
    ]:
        assert text in words, (text, words)
    assert "bob running" in web.get("queue", queue="shop", groups="running").words()
    web.get("queue", queue="nope", status=404)
    web.get("queue", status=400)
    shop.set("plain", "text")
    web.get("queue", queue="plain", status=404)


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


# ---- what they change


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
    [line] = wait_for(lambda: audit(web), what="the line of the audit log")
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
    assert "Not done: the message that it sent last is gone" in web.act(act="fire", queue="shop", schedule="nightly").words()
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


def test_a_schedule_runs_now(web, r3):
    do = r3.execute_command
    do("DQ.CREATE", "q", "RETAIN", 600000)
    do("DQ.SCHEDULE", "q", "often", "EVERY", 20, "PAYLOAD", "job", "TYPE", "t", "HEADERS", 1, "a", "b")
    wait_for(lambda: do("DQ.LEN", "q") > 0, what="the schedule")
    done = web.act(act="fire", queue="q", schedule="often").words()
    id = re.search(r"with the id (\S+)\.", done)[1]
    message = do("DQ.GET", "q", id)
    assert (message[b"payload"], message[b"type"], message[b"headers"]) == (b"job", b"t", {b"a": b"b"})


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


# ---- who may do what


def test_every_answer_forbids_foreign_content(web, shop):
    for page in ["", "queue?queue=shop", "nope", "style.css", "dq.js", "login", "payload?queue=shop&id=a1"]:
        headers = web.ask(page).headers
        policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
        assert policy["default-src"] == "'none'" and policy["script-src"] == "'self'" and "unsafe" not in str(policy)
        assert policy["frame-ancestors"] == "'none'" and headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in headers
    page = web.get("queue", queue="shop")
    assert page.headers["cache-control"] == "no-store"
    assert not re.findall(r"(?:src|href|action)=\"(?:https?:)?//", page.text)
    for tag, attributes in page.elements():
        assert "style" not in attributes and tag != "style", (tag, attributes)


def test_a_form_without_the_token_of_its_visitor_is_refused(start, shop):
    web = start()
    me, other = web.visitor(), start().visitor()
    token = me.get("confirm", act="pause", queue="shop").csrf()
    for form in [{}, {"csrf": ""}, {"csrf": "x"}, {"csrf": other.get("confirm", act="pause", queue="shop").csrf()}]:
        refused = me.ask("do?act=pause&queue=shop", form)
        assert refused.status == 403 and "not from a page of yours" in refused.words()
    assert not shop.execute_command("DQ.INFO", "shop")[b"paused"]
    assert audit(web) == []
    assert me.ask("do?act=pause&queue=shop", {"csrf": token}).status == 200
    assert shop.execute_command("DQ.INFO", "shop")[b"paused"]


def test_without_a_login_other_names_of_this_machine_are_refused(start, shop):
    """A page of somebody else whose name was made to lead here must not be able to read ours."""
    me = start("--host", "queues.example").visitor()
    for host in ["evil.example", "evil.example:80", "127.0.0.1.evil.example", ""]:
        assert me.ask("queue?queue=shop", Host=host).status == 403
    for host in ["localhost", "127.0.0.1:99", "queues.example"]:
        assert me.ask("queue?queue=shop", Host=host).status == 200


@pytest.fixture
def passwords(program, tmp_path):
    """A password file with the user ann, whose password is correct horse."""
    command = [program, "web", "--hash-password", "ann"]
    line = subprocess.run(command, input="correct horse\n", capture_output=True, text=True, check=True).stdout
    path = tmp_path / "passwords"
    path.write_text("# who may see the queues\n" + line)
    return path


def test_name_and_password_are_asked_for(start, passwords, shop):
    web = start("--password-file", passwords)
    me = web.visitor()
    for page in ["", "queue?queue=shop", "payload?queue=shop&id=a1", "nope"]:
        assert me.ask(page).address.endswith("/login")
    assert me.ask("do?act=pause&queue=shop", {"csrf": ""}).status == 403
    assert me.ask("login", {"user": "ann", "password": "wrong"}).status == 403
    assert me.ask("login", {"user": "bob", "password": "correct horse"}).status == 403
    assert me.ask("login", {"user": "ann", "password": "correct horse"}, Sec_Fetch_Site="cross-site").status == 403
    assert me.ask("login", {"user": "ann", "password": "correct horse"}).address == web.url
    [cookie] = me.cookies
    assert cookie.has_nonstandard_attr("HttpOnly") and cookie.get_nonstandard_attr("SameSite") == "Lax"
    assert not cookie.secure and len(cookie.value) == 64
    me.act(act="pause", queue="shop")
    assert me.ask("logout", {"csrf": "x"}).status == 403
    page = me.get("queue", queue="shop")
    assert "ann" in page.words()
    assert me.ask("logout", {"csrf": page.csrf()}).address.endswith("/login")
    me.cookies.set_cookie(cookie)
    assert me.ask("").address.endswith("/login"), "the session has ended, also for who still has its cookie"
    lines = wait_for(lambda: (lines := audit(web)) and len(lines) == 5 and lines, what="the audit log")
    assert [(line["user"], line["action"]) for line in lines] == [
        ("ann", "sign in"),
        ("bob", "sign in"),
        ("ann", "sign in"),
        ("ann", "pause"),
        ("ann", "sign out"),
    ]
    assert "Wrong" in lines[0]["outcome"] and lines[2]["outcome"] == "done"
    assert "correct" not in web.log_path.read_text()


def test_the_cookie_is_kept_to_encrypted_connections_if_there_are_any(start, passwords):
    me = start("--password-file", passwords).visitor(X_Forwarded_Proto="https")
    me.ask("login", {"user": "ann", "password": "correct horse"})
    assert all(cookie.secure for cookie in me.cookies) and me.cookies


def test_passwords_cannot_be_tried_without_end(start, passwords):
    me = start("--password-file", passwords).visitor()
    tried = [me.ask("login", {"user": "ann", "password": "wrong"}).status for _ in range(6)]
    assert tried == [403] * 5 + [429]


def test_a_proxy_names_the_user(start, shop):
    web = start("--user-header", "X-Forwarded-User")
    me = web.visitor(X_Forwarded_User="ann <b>")
    assert "ann <b>" in me.get("").words()
    assert web.visitor().ask("").status == 403
    me.act(act="pause", queue="shop")
    token = me.get("confirm", act="resume", queue="shop").csrf()
    bob = web.visitor(X_Forwarded_User="bob")
    assert bob.ask("do?act=resume&queue=shop", {"csrf": token}).status == 403
    [line] = wait_for(lambda: audit(web), what="the audit log")
    assert line["user"] == "ann <b>"
    elsewhere = start("--user-header", "X-Forwarded-User", "--proxy", "192.0.2.7")
    assert elsewhere.visitor(X_Forwarded_User="ann").ask("").status == 403


def test_read_only_shows_everything_and_changes_nothing(start, shop):
    me = start("--read-only").visitor()
    page = me.get("queue", queue="shop")
    assert "read-only" in page.words() and "Pause" not in page.links() and "confirm?" not in page.text
    assert "no such mailbox" in me.get("messages", queue="shop", state="dead", error="*").words()
    token = me.get("confirm", act="pause", queue="shop").csrf()
    refused = me.ask("do?act=pause&queue=shop", {"csrf": token})
    assert refused.status == 403 and "--read-only" in refused.words()
    assert not shop.execute_command("DQ.INFO", "shop")[b"paused"]


def test_the_audit_log_can_be_a_file(start, shop, tmp_path):
    path = tmp_path / "audit.log"
    path.write_text("before\n")
    web = start("--audit-log", path)
    web.visitor().act(act="pause", queue="shop")
    wait_for(lambda: path.read_text().count("\n") == 2, what="the line")
    assert json.loads(path.read_text().splitlines()[1])["what"] == "shop"
    assert audit(web) == []


def test_a_hostile_name_cannot_forge_a_line_of_the_audit_log(start, r3):
    name = 'q"}\n{"user":"root"'
    r3.execute_command("DQ.SEND", name, "x")
    web = start()
    web.visitor().act(act="pause", queue=name)
    [line] = wait_for(lambda: audit(web), what="the line")
    assert line["what"] == name.replace("\n", "\\n")


def test_it_does_not_open_to_others_by_mistake(program, dq):
    refused = dq("web", "--listen", "0.0.0.0:0", code=1).stderr
    assert "--password-file" in refused and "--no-login" in refused
    assert dq("web", "--user-header", "X", "--password-file", "x", code=2)
    assert "URL" in Cli(program, "http://x")("web", code=1).stderr


def test_a_wrong_password_file_is_an_error(dq, tmp_path):
    path = tmp_path / "passwords"
    for text, why in [("", "no users"), ("ann:secret\n", "line 1"), ("ann\n", "line 1")]:
        path.write_text(text)
        told = dq("web", "--password-file", path, code=1).stderr
        assert why in told and "secret" not in told
    assert "No such file" in dq("web", "--password-file", tmp_path / "none", code=1).stderr


# ---- hostile names and payloads

EVIL = [
    b"<script>alert(1)</script>",
    b"\"><img src=x onerror=alert(1)>",
    b"' onmouseover='alert(1)",
    b"javascript:alert(1)",
    b"</pre></title><svg onload=alert(1)>",
    b"&lt;script&gt;&#60;b&#62;",
    b"\x1b[2J\x00\xff\xfe\xe2\x80\xae<b>",
    "订单 \u202e\u2028<i>".encode(),
    b"?queue=x&act=purge#%3Cb%3E",
    b"../../etc/passwd%00",
]
OURS = {"html", "head", "meta", "title", "link", "script", "body", "header", "a", "nav", "span", "button", "div", "main", "h1", "h2"}
OURS |= {"section", "p", "b", "ol", "li", "time", "pre", "dl", "dt", "dd", "table", "thead", "tbody", "tr", "th", "td", "form"}
OURS |= {"input", "label", "select", "option", "details", "summary", "figure", "figcaption", "svg", "polyline", "polygon", "code"}
OURS |= {"textarea"}


def check_markup(page):
    """Nothing of what a queue holds has become an element, an attribute or an address of its own."""
    for tag, attributes in page.elements():
        assert tag in OURS, tag
        assert not [name for name in attributes if name.startswith("on") or name == "srcdoc"], (tag, attributes)
        if tag == "script":
            assert attributes == {"src": "dq.js", "defer": None}
        for name in ("href", "action", "src"):
            if name in attributes:
                address = attributes[name]
                assert re.match(r"^(\./|[a-z]+(\.[a-z]+)?)(\?|$)", address), address
    # Only the fields of forms have what the visitor has asked for as it is.
    shown = re.sub(rb'<input [^>]*>', b"", page.body)
    assert not re.search(rb"[\x00-\x08\x0b-\x1f\x7f]|\xe2\x80\xae|\xe2\x80\xa8", shown)


@pytest.mark.parametrize("evil", EVIL, ids=lambda evil: repr(evil)[2:20])
def test_hostile_names_and_payloads_are_only_text(start, r3, evil):
    do = r3.execute_command
    options = ["GROUP", evil, "TYPE", evil, "HEADERS", 1, evil, evil]
    do("DQ.SEND", evil, evil, "ID", evil, *options)
    do("DQ.SEND", evil, b'{"' + evil.replace(b'"', b"").replace(b"\x1b", b"").replace(b"\x00", b"") + b'": 1}', "ID", "json", "BATCH", evil)
    do("DQ.SEND", evil, "x", "ID", "held", "AFTER", evil)
    for id, receipt, *_ in do("DQ.FETCH", evil, "COUNT", 2, "CONSUMER", evil):
        if id == evil:
            do("DQ.NACK", evil, receipt, "FATAL", "ERROR", evil, "NOTE", evil)
    do("DQ.SCHEDULE", evil, evil, "EVERY", 3600000, "PAYLOAD", "x")
    do("DQ.SEND", evil + b":{a}", "x")
    do("DQ.SEND", evil + b":{b}", "x")
    web = start().visitor()
    web.sees("", "2 queues")
    quoted = urllib.parse.quote(evil)
    pages = ["", f"?q={quoted}", f"queue?queue={quoted}&groups=all", f"family?family={quoted}", f"nope?{quoted}"]
    pages += [f"messages?queue={quoted}&state={state}" for state in ("dead", "running", "held", quoted)]
    pages += [f"messages?queue={quoted}&state=dead&type={quoted}&error={quoted}&since={quoted}"]
    pages += [f"message?queue={quoted}&id={id}&as={view}" for id in (quoted, "json", "held") for view in ("", "text", "hex")]
    pages += [f"confirm?act={act}&queue={quoted}&state=dead&id={quoted}&group={quoted}" for act in ("purge", "pause", "cancel-one", quoted)]
    pages += [f"confirm?act=fire&queue={quoted}&schedule={quoted}", f"send?queue={quoted}", f"job?id={quoted}"]
    for page in pages:
        got = web.ask(page)
        assert got.status in (200, 400, 404), (page, got.status, got.words())
        check_markup(got)
    # The links of the pages lead to the queue and the message, whatever their names are.
    page = web.get(f"messages?queue={quoted}&state=dead")
    [link] = [address for address in page.links().values() if address.startswith("message?")]
    got = web.get(link)
    assert "died: rejected" in got.words()
    check_markup(got)
    check_markup(web.send(web.get(f"confirm?act=redrive-one&queue={quoted}&id={quoted}")))
    assert do("DQ.LEN", evil, "dead") == 0


def test_a_hostile_address_is_an_answer(web):
    for page in ["%00", "%ff%fe?%ff=%ff", "queue?queue=%", "a/b/../c", "x" * 5000, "queue?" + "a=b&" * 5000, "./?page=-1&sort=%ff"]:
        assert web.ask(page).status in (200, 400, 404, 414), page
    assert web.ask("do", {"payload": "x" * (3 << 20)}).status in (403, 413)


# ---- servers of other kinds


def test_a_server_that_goes_away_and_comes_back(start, make_server):
    server = make_server(appendonly="yes")
    server.client().execute_command("DQ.SEND", "q", "x", "ID", "m")
    me = start(url=f"redis://127.0.0.1:{server.port}").visitor()
    me.sees("", "q")
    assert me.ask("health").status == 200
    server.stop()
    me.sees("", "no connection", "The figures are old", "q")
    assert me.ask("health").status == 503
    assert "no connection" in me.get("queue", queue="q", status=503).words()
    assert "no connection" in me.get("confirm", act="empty", queue="q", status=503).words()
    server.start()
    assert "m" in me.get("messages", queue="q", state="ready").links()
    wait_for(lambda: me.ask("health").status == 200, 20, "the figures")
    assert "no connection" not in me.get("").words()


def test_a_server_that_is_not_there_yet(start, make_server):
    server = make_server()
    server.stop()
    me = start(url=f"redis://127.0.0.1:{server.port}").visitor()
    assert "no connection" in me.sees("", "no connection").words()
    server.start()
    server.client().execute_command("DQ.SEND", "q", "x")
    me.sees("", "q")


def test_a_limited_user_sees_and_does_what_is_allowed(start, server, shop):
    rights = "+hello +scan +dq.info +dq.get +dq.list +dq.groups +dq.pause"
    shop.execute_command(*f"ACL SETUSER viewer on >pa55 ~shop* -@all {rights}".split())
    try:
        me = start(url=f"redis://viewer:pa55@127.0.0.1:{server.port}").visitor()
        page = me.sees("", "shop")
        assert "mails" not in page.words()
        assert "ann" in me.get("queue", queue="shop").words()
        assert "died" in me.get("message", queue="shop", id="dead").words()
        assert "NOPERM" in me.get("messages", queue="shop", state="dead", id="*", status=403).words()
        assert "NOPERM" in me.get("confirm", act="purge", queue="shop", state="dead", id="*", status=403).words()
        assert "shop is paused" in me.act(act="pause", queue="shop").words()
        assert "Not done: NOPERM" in me.act(act="resume", queue="shop").words()
    finally:
        shop.execute_command("ACL", "DELUSER", "viewer")


def test_the_connection_can_be_tls(start, tls_url, certificates):
    options = ["--cacert", certificates / "ca.crt", "--cert", certificates / "own.crt", "--key", certificates / "own.key"]
    me = start(url=tls_url, before=options).visitor()
    me.sees("", "q")
    assert "pa55" not in me.get("").text
    assert "is paused" in me.act(act="pause", queue="q").words()


def test_a_cluster_is_one_server(start, cluster):
    def do(key, name, *args):
        return cluster.owner(key).client().execute_command(name, key, *args)

    for key in cluster.nodes[0].client().execute_command("DQ.PARTITIONS", "mails", 4):
        do(key, "DQ.SEND", "x", "ID", b"in " + key)
    for n in range(6):
        do(f"q{n}", "DQ.SEND", "x", "ID", "m")
    me = start(url=f"redis://127.0.0.1:{cluster.nodes[2].port}").visitor()
    me.sees("", "mails:{*}", "4 queues", *[f"q{n}" for n in range(6)])
    me.sees("family", "mails:{0}", "mails:{3}", family="mails")
    assert {f"in mails:{{{n}}}" for n in range(4)} <= set(me.get("messages", family="mails", state="ready").links())
    for n in range(6):
        assert "m" in me.get("messages", queue=f"q{n}", state="ready").links()
    assert "4 messages cancelled" in me.act(act="cancel", family="mails", state="ready").words()
    source = cluster.owner("q0")
    target = next(node for node in cluster.nodes if node is not source)
    cluster.move_slot(cluster.slot("q0"), source, target)
    assert "q0 is paused" in me.act(act="pause", queue="q0").words()
    assert "m" in me.get("messages", queue="q0", state="ready").links()
