"""The users who may see and change something in `dq web`, and the lines of the audit log about it."""

import http.client
import json
import re
import subprocess
import urllib.parse
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.harness.cli import Cli
from tests.harness.server import free_port, wait_for
from tests.harness.web import Web

pytest_plugins = ["tests.harness.web_fixtures"]
pytestmark = pytest.mark.timeout(600)


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
    assert web.audit() == []
    assert me.ask("do?act=pause&queue=shop", {"csrf": token}).status == 200
    assert shop.execute_command("DQ.INFO", "shop")[b"paused"]


def test_without_a_login_other_names_of_this_machine_are_refused(start, shop):
    """A page of another site whose name was made to lead here must not be able to read ours."""
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
        assert "/login" in me.ask(page).address
    assert "/login" in me.ask("do?act=pause&queue=shop", {"csrf": ""}).address
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
    lines = wait_for(lambda: (lines := web.audit()) and len(lines) == 5 and lines, what="the audit log")
    assert [(line["user"], line["action"]) for line in lines] == [
        ("ann", "sign in"),
        ("bob", "sign in"),
        ("ann", "sign in"),
        ("ann", "pause"),
        ("ann", "sign out"),
    ]
    assert "Wrong" in lines[0]["outcome"] and lines[2]["outcome"] == "done"
    assert "correct" not in web.log_path.read_text()


def test_a_sign_in_leads_to_the_page_that_was_asked_for_and_keeps_the_name(start, passwords, r3):
    r3.execute_command("DQ.SEND", "a b", "x", "ID", "é&1")
    me = start("--password-file", passwords).visitor()
    wanted = "message?queue=a%20b&id=%C3%A9%261"
    form = me.ask(wanted)
    assert form.status == 200 and "Password" in form.words()
    [next_] = [e["value"] for tag, e in form.elements() if e.get("name") == "next"]
    wrong = me.ask("login", {"user": "ann", "password": "wrong", "next": next_})
    fields = {e["name"]: e.get("value") for tag, e in wrong.elements() if tag == "input"}
    assert wrong.status == 403 and (fields["user"], fields["next"]) == ("ann", next_)
    assert fields["password"] is None
    page = me.ask("login", {"user": fields["user"], "password": "correct horse", "next": fields["next"]})
    assert page.address.endswith(f"/{wanted}") and "é&1" in page.words()


def test_what_is_sent_after_the_end_of_a_session_is_asked_again(start, passwords, shop):
    me = start("--password-file", passwords).visitor()
    ann = {"user": "ann", "password": "correct horse"}
    me.ask("login", ann)
    for sent in (me.get("confirm", act="pause", queue="shop", back="queue?queue=shop"), me.get("send", queue="shop")):
        me.cookies.clear()
        form = me.ask(sent.form(), {"csrf": sent.csrf(), "payload": "x"})
        [next_] = [e["value"] for tag, e in form.elements() if e.get("name") == "next"]
        again = me.ask("login", {**ann, "next": next_})
        assert again.status == 200 and again.form() == sent.form(), again.words()
    assert shop.execute_command("DQ.INFO", "shop")[b"paused"] is False
    assert me.ask("nope", {}).status == 403, "in again, but not with the token of the page"


@pytest.mark.parametrize(
    "next_", ["//evil.example/x", "https://evil.example", "/\\evil.example", "javascript:alert(1)", "login", "x" * 2000, "queue?a\r\nx: y"]
)
def test_a_sign_in_leads_nowhere_else(start, passwords, next_):
    web = start("--password-file", passwords)
    page = web.visitor().ask("login", {"user": "ann", "password": "correct horse", "next": next_})
    assert page.address.startswith(web.url) and "login" not in page.address


def test_a_form_of_another_site_is_refused(start, passwords, shop):
    """Browsers send Sec-Fetch-Site to https and to this machine only, and Origin to all others."""
    web = start("--password-file", passwords)
    host, ann = "queues.example:8377", {"user": "ann", "password": "correct horse"}

    def status(form, address="login", **headers):
        return web.visitor().ask(address, form, Host=host, **headers)

    for origin in ["http://evil.example", "http://queues.example:99", "http://queues.example.evil:8377", "null"]:
        assert status(ann, Origin=origin).status == 403, origin
        assert "not from a page of ours" in status({"csrf": ""}, "do?act=pause&queue=shop", Origin=origin).words()
    assert status(ann, Referer="http://evil.example/").status == 403
    assert web.audit() == [], "nothing was tried"
    # The answer leads to a page, which is asked for without the session's cookie of another name.
    for headers in [{"Origin": f"http://{host}"}, {"Referer": f"http://{host}/login"}, {}]:
        assert status(ann, **headers).status == 200
    behind = {"Origin": "https://pages.example", "X_Forwarded_Host": "pages.example"}
    assert status(ann, **behind).status == 200
    assert status(ann, Sec_Fetch_Site="cross-site", **behind).status == 403
    me = start().visitor()
    token = me.get("confirm", act="pause", queue="shop").csrf()
    for origin, expected in [("http://evil.example", 403), (me.url.rstrip("/"), 200)]:
        assert me.ask("do?act=pause&queue=shop", {"csrf": token}, Origin=origin).status == expected


def test_the_cookie_is_kept_to_encrypted_connections_if_there_are_any(start, passwords):
    me = start("--password-file", passwords).visitor(X_Forwarded_Proto="https")
    me.ask("login", {"user": "ann", "password": "correct horse"})
    assert all(cookie.secure for cookie in me.cookies) and me.cookies


def test_passwords_cannot_be_tried_without_end(start, passwords):
    me = start("--password-file", passwords).visitor()
    tried = [me.ask("login", {"user": "ann", "password": "wrong"}).status for _ in range(6)]
    assert tried == [403] * 5 + [429]


def test_a_long_name_or_password_is_neither_kept_nor_logged(start, passwords):
    web = start("--password-file", passwords)
    me = web.visitor()
    for _ in range(6):
        assert me.ask("login", {"user": "x" * 257, "password": "correct horse"}).status == 403
        assert me.ask("login", {"user": "ann", "password": "x" * 1025}).status == 403
    assert me.ask("login", {"user": "y" * 256, "password": "wrong"}).status == 403
    assert me.ask("login", {"user": "ann", "password": "correct horse"}).address == web.url
    lines = wait_for(lambda: (lines := web.audit()) and len(lines) == 14 and lines, what="the audit log")
    assert {(line["user"], line["what"]) for line in lines[:12]} == {("", "the name or the password is too long")}
    assert lines[12]["user"] == "y" * 256 and lines[13]["outcome"] == "done"


def test_passwords_tried_at_once_are_all_counted(start, passwords):
    web = start("--password-file", passwords)

    def attempt(_):
        return web.visitor().ask("login", {"user": "ann", "password": "wrong"}).status

    with ThreadPoolExecutor(16) as pool:
        assert sorted(pool.map(attempt, range(16))) == [403] * 5 + [429] * 11


def test_two_headers_with_a_user_are_refused(start):
    """A proxy that adds its header, and leaves the one of the visitor, must not let the visitor be anybody."""
    web = start("--user-header", "X-Forwarded-User")
    for users, status in [(["ann"], 200), (["root", "ann"], 400), (["ann", "ann"], 400)]:
        connection = http.client.HTTPConnection(urllib.parse.urlsplit(web.url).netloc, timeout=30)
        connection.putrequest("GET", "/")
        for user in users:
            connection.putheader("X-Forwarded-User", user)
        connection.endheaders()
        assert connection.getresponse().status == status, users
        connection.close()


def test_a_proxy_names_the_user(start, shop):
    web = start("--user-header", "X-Forwarded-User")
    me = web.visitor(X_Forwarded_User="ann <b>")
    assert "ann <b>" in me.get("").words()
    assert web.visitor().ask("").status == 403
    me.act(act="pause", queue="shop")
    token = me.get("confirm", act="resume", queue="shop").csrf()
    bob = web.visitor(X_Forwarded_User="bob")
    assert bob.ask("do?act=resume&queue=shop", {"csrf": token}).status == 403
    [line] = wait_for(lambda: web.audit(), what="the audit log")
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
    assert web.audit() == []


def test_a_hostile_name_cannot_forge_a_line_of_the_audit_log(start, r3):
    name = 'q"}\n{"user":"root"'
    r3.execute_command("DQ.SEND", name, "x")
    web = start()
    web.visitor().act(act="pause", queue=name)
    [line] = wait_for(lambda: web.audit(), what="the line")
    assert line["what"] == name.replace("\n", "\\n")


def test_it_does_not_open_to_others_by_mistake(program, dq):
    refused = dq("web", "--listen", "0.0.0.0:0", code=1).stderr
    assert "--password-file" in refused and "--no-login" in refused
    assert dq("web", "--user-header", "X", "--password-file", "x", code=2)
    assert "URL" in Cli(program, "http://x")("web", code=1).stderr


def test_a_wrong_password_file_is_an_error(dq, tmp_path):
    path = tmp_path / "passwords"
    long = "a" * 257 + ":$2y$secret\n"
    for text, why in [("", "no users"), ("ann:secret\n", "line 1"), ("ann\n", "line 1"), (long, "256 bytes")]:
        path.write_text(text)
        told = dq("web", "--password-file", path, code=1).stderr
        assert why in told and "secret" not in told
    assert "No such file" in dq("web", "--password-file", tmp_path / "none", code=1).stderr


def test_a_password_file_that_everybody_may_change_is_refused(start, dq, passwords):
    passwords.chmod(0o666)
    assert "everybody may change this file" in dq("web", "--password-file", passwords, code=1).stderr
    for mode, warns in [(0o644, True), (0o640, False), (0o600, False)]:
        passwords.chmod(mode)
        told = start("--password-file", passwords).log_path.read_text()
        assert ("everybody may read this file" in told) == warns, oct(mode)


@pytest.mark.parametrize("where", ["{}", ":{}", "localhost:{}", "127.0.0.1:{}"])
def test_it_listens_on_a_port_or_a_name(program, server, tmp_path, where):
    port = free_port()
    with Web(Cli(program, f"redis://127.0.0.1:{server.port}"), tmp_path / "web.log", listen=where.format(port)) as web:
        assert web.url == f"http://127.0.0.1:{port}/"
        assert web.visitor().ask(f"http://localhost:{port}/").status == 200


def test_the_password_of_the_server_can_be_in_a_file(program, server, r3, tmp_path):
    r3.execute_command("DQ.SEND", "q", "x")
    r3.execute_command("ACL", "SETUSER", "me", "on", ">p@/#55", "~*", "+@all")
    secret = tmp_path / "secret"
    secret.write_text("p@/#55\n")
    secret.chmod(0o600)
    try:
        me = Cli(program, f"redis://me@127.0.0.1:{server.port}")
        assert "q " in me("ls", "--auth-file", secret).stdout
        secret.chmod(0o602)
        assert "everybody may change" in me("ls", "--auth-file", secret, code=1).stderr
    finally:
        r3.execute_command("ACL", "DELUSER", "me")
