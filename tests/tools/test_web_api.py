"""The addresses behind api/: what OpenAPI describes of them, tokens of programs, roles, and queues that are not one's own."""

import json
import re
import subprocess

import jsonschema
import pytest

from tests.harness.server import ROOT, wait_for

pytest_plugins = ["tests.harness.web_fixtures"]

DESCRIPTION = json.loads((ROOT / "cli/src/web/assets/openapi.json").read_text())
FIELDS = {"queue": "shop", "id": "b1", "find": "dead", "state": "ready"}
# The acts of forms, with what each needs to have something to do.
OPERATED = [
    {"act": "pause", "queue": "shop"},
    {"act": "resume", "queue": "shop"},
    {"act": "redrive", "queue": "shop", "state": "dead"},
    {"act": "send", "queue": "shop", "payload": "x", "id": "new"},
    {"act": "edit", "queue": "shop", "id": "new", "payload": "y"},
    {"act": "reschedule", "queue": "shop", "id": "new", "delay": "1h"},
    {"act": "cancel", "queue": "shop", "state": "delayed", "id": "new"},
    {"act": "pause-schedule", "queue": "shop", "schedule": "nightly"},
]
ADMINISTERED = [
    {"act": "settings", "queue": "shop", "lease": "40s"},
    {"act": "limit", "queue": "shop", "limit": "l", "concurrency": "3"},
    {"act": "schedule", "queue": "shop", "name": "s", "every": "1h", "payload": "x"},
    {"act": "unschedule", "queue": "shop", "schedule": "nightly"},
    {"act": "empty", "queue": "shop"},
    {"act": "delete", "queue": "shop"},
]


@pytest.fixture
def file(program, tmp_path):
    """Writes a password file with a token for each program, which has these rights. Returns it and the tokens."""

    def write(**rights):
        lines, tokens = [], {}
        for name, text in rights.items():
            command = [program, "web", "--new-token", name]
            tokens[name], line = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
            lines.append(line + text)
        path = tmp_path / "passwords"
        path.write_text("\n".join(lines))
        path.chmod(0o600)
        return path, tokens

    return write


def bearer(web, token):
    return web.visitor(Authorization=f"Bearer {token}")


def checked(path, kind, answer):
    """The answer to a request, which is as it is described."""
    responses = DESCRIPTION["paths"][f"/{path}"][kind]["responses"]
    of = responses["200"] if answer.status == 200 else DESCRIPTION["components"]["responses"]["Refused"]
    told = json.loads(answer.text)
    schema = {**of["content"]["application/json"]["schema"], "components": DESCRIPTION["components"]}
    jsonschema.validate(told, schema, jsonschema.Draft202012Validator)
    return told


def test_each_address_is_described_and_answers_as_described(start, shop):
    source = (ROOT / "cli/src/web/api.rs").read_text()
    routes = re.findall(r'^        "([a-z.]+)"[^|]*?=>', source[source.index("pub fn route") : source.index("fn act(")], re.MULTILINE)
    assert {f"/api/{route}" for route in routes} == set(DESCRIPTION["paths"])
    web = start().visitor()
    web.sees("", "shop", "mails:{*}")
    for path, kinds in DESCRIPTION["paths"].items():
        if "get" in kinds and path != "/api/job":
            wanted = {one["name"] for one in kinds["get"]["parameters"] if one["required"]} | {"queue"}
            answer = web.get(path[1:], **{name: FIELDS[name] for name in wanted})
            assert checked(path[1:], "get", answer), path
    assert json.loads(web.get("api/openapi.json").text) == DESCRIPTION
    for path, fields, status in [
        ("api/queue", {"queue": "nope"}, 404),
        ("api/messages", {"queue": "shop", "state": "x"}, 400),
        ("api/job", {"id": 77}, 404),
        ("api/do", {"act": "pause", "queue": "shop"}, 400),
    ]:
        kind = "get" if "get" in DESCRIPTION["paths"][f"/{path}"] else "post"
        checked(path, kind, web.get(path, status=status, **fields))


def test_a_token_acts_as_a_form_does_and_is_in_the_audit_log(start, file, shop):
    path, tokens = file(ci=":operator")
    web = start("--password-file", path)
    me = bearer(web, tokens["ci"])
    done = checked("api/do", "post", me.ask("api/do", OPERATED[0]))
    assert (done["done"], done["failed"], done["user"]) == (True, False, "ci")
    assert shop.execute_command("DQ.INFO", "shop")[b"paused"]
    [line] = wait_for(web.audit, what="the audit log")
    assert (line["user"], line["action"], line["what"]) == ("ci", "pause", "shop")
    again = checked("api/job", "get", me.get("api/job", id=done["id"]))
    assert again == done
    assert checked("api/stop", "post", me.ask(f"api/stop?id={done['id']}", {"x": ""})) == done
    # A page is for people, and a token that nobody has is for nothing.
    assert me.ask("").status == 404
    assert me.ask("do?act=resume&queue=shop", {"x": ""}).status == 404
    for wrong in ("x" * 64, tokens["ci"][:-1]):
        refused = bearer(web, wrong).ask("api/do", OPERATED[1])
        assert refused.status == 401 and json.loads(refused.text)["error"]
    assert bearer(web, "x").ask("api/queues").status == 401
    assert shop.execute_command("DQ.INFO", "shop")[b"paused"]


def test_a_program_without_a_token_is_told_so(start, file, shop):
    path, _ = file(ci="")
    refused = start("--password-file", path).visitor().ask("api/queues")
    assert refused.status == 403 and json.loads(refused.text) == {"error": "Sign in first."}


@pytest.mark.parametrize("role", ["viewer", "operator", "admin"])
def test_each_role_may_do_what_is_its_own(start, file, shop, role):
    path, tokens = file(it=f":{role}")
    me = bearer(start("--password-file", path), tokens["it"])
    for acts, allowed in (OPERATED, role != "viewer"), (ADMINISTERED, role == "admin"):
        for fields in acts:
            before = shop.execute_command("DEBUG", "DIGEST")
            answer = me.ask("api/do", fields)
            told = checked("api/do", "post", answer)
            assert answer.status == (200 if allowed else 403), (fields, told)
            if allowed:
                assert (told["done"], told["failed"]) == (True, False), (fields, told)
            else:
                assert shop.execute_command("DEBUG", "DIGEST") == before
    assert me.get("api/queues").status == 200


def test_the_header_of_a_proxy_names_the_role_and_pages_show_what_it_may(start, shop):
    web = start("--user-header", "X-User", "--role-header", "X-Role")
    buttons = {"viewer": set(), "operator": {"Pause"}, "admin": {"Pause", "Change settings", "Delete queue"}}
    for role, expected in buttons.items():
        me = web.visitor(X_User="ann", X_Role=role)
        page = me.get("queue", queue="shop")
        assert buttons["admin"] & set(page.links()) == expected
        assert ("read-only" in page.words()) == (role == "viewer")
    # Nobody's role is that of a viewer.
    assert "Pause" not in web.visitor(X_User="ann").get("queue", queue="shop").links()
    operator = web.visitor(X_User="ann", X_Role="operator")
    token = operator.get("confirm", act="pause", queue="shop").csrf()
    refused = operator.ask("do?act=delete&queue=shop", {"csrf": token})
    assert refused.status == 403 and "You are operator here, and this is for admin." in refused.words()
    assert operator.ask("settings?queue=shop", {"csrf": token, "lease": "40s"}).status == 403
    assert operator.ask("do?act=pause&queue=shop", {"csrf": token}).status == 200


def test_a_user_sees_and_changes_only_the_queues_of_its_globs(start, file, shop):
    """Each page and address is asked for a queue that the user may not see, and lists leave it out."""
    path, tokens = file(shop=":admin:shop* other", all="")
    web = start("--password-file", path)
    shop.execute_command("DQ.SEND", "shop2", "x", "ID", "b1")
    shop.execute_command("DQ.SEND", "secret", "x", "ID", "b1")
    everything, me = bearer(web, tokens["all"]), bearer(web, tokens["shop"])
    everything.sees("api/queues", "secret", "shop2")
    names = [queue["queue"] for queue in json.loads(me.get("api/queues").text)["queues"]]
    assert names == ["shop", "shop2"]
    for path, kinds in DESCRIPTION["paths"].items():
        if "get" not in kinds or path in ("/api/job", "/api/openapi.json"):
            continue
        wanted = {one["name"] for one in kinds["get"]["parameters"] if one["required"]}
        fields = {name: FIELDS[name] for name in wanted - {"queue"}}
        if any(one["name"] == "queue" for one in kinds["get"]["parameters"]):
            assert me.ask(f"{path[1:]}?queue=secret&" + "&".join(f"{k}={v}" for k, v in fields.items())).status == 403, path
        elif path != "/api/history":
            assert "secret" not in me.get(path[1:], **fields).text, path
    assert me.ask("api/history").status == 403
    found = json.loads(me.get("api/search", find="b1").text)
    assert {hit["queue"] for hit in found["found"]} == {"shop", "shop2"}
    before = shop.execute_command("DEBUG", "DIGEST-VALUE", "secret", "mails:{0}")
    for fields in [*OPERATED, *ADMINISTERED]:
        me.ask("api/do", {**fields, "queue": "secret"})
    me.ask("api/do", {"act": "settings", "queue": "shop", "deadto": "secret"})
    me.ask("api/do", {"act": "pause", "family": "mails"})
    assert shop.execute_command("DEBUG", "DIGEST-VALUE", "secret", "mails:{0}") == before
    assert shop.execute_command("DQ.INFO", "shop")[b"deadto"] is None
    # Of a pattern the queues are taken that the user may see.
    done = json.loads(me.ask("api/do", {"act": "purge", "queues": "*", "state": "ready"}).text)
    assert done["failed"] is False
    assert shop.execute_command("DQ.LEN", "shop2") == 0 and shop.execute_command("DQ.LEN", "secret") == 1


def test_pages_leave_out_the_queues_that_a_user_may_not_see(start, program, shop, tmp_path):
    command = [program, "web", "--hash-password", "ann"]
    line = subprocess.run(command, input="correct horse\n", capture_output=True, text=True, check=True).stdout.strip()
    path = tmp_path / "passwords"
    path.write_text(f"{line}:operator:shop\n")
    path.chmod(0o600)
    shop.execute_command("DQ.SEND", "secret", "x", "ID", "b1")
    shop.execute_command("DQ.FETCH", "secret", "CONSUMER", "hushed")
    for parent, child in [("shop", "secret"), ("secret", "shop")]:
        shop.execute_command("DQ.SEND", parent, "x", "ID", f"of-{parent}", "CHILDREN", 2)
        shop.execute_command("DQ.SEND", child, "x", "ID", f"in-{child}", "PARENT", parent, f"of-{parent}")
    [[_, receipt, _, _]] = shop.execute_command("DQ.FETCH", "secret")
    shop.execute_command("DQ.NACK", "secret", receipt, "FATAL", "ERROR", "hushed")
    me = start("--password-file", path).visitor()
    me.ask("login", {"user": "ann", "password": "correct horse"})
    me.sees("", "shop")
    for page in ["", "messages?queues=*&state=any", "messages?queues=*&id=b1", "errors", "workers", "schedules", "server"]:
        text = me.ask(page).text
        assert not re.findall("secret|hushed|mails:{", text), page
    # A message shows its own parent, and nothing else of other queues.
    for page in ["message?queue=shop&id=of-shop", "tree?queue=shop&id=of-shop"]:
        assert "of-shop" in me.ask(page).text and not re.findall("secret|hushed", me.ask(page).text), page
    assert "of-secret" not in me.ask("tree?queue=shop&id=in-shop").text
    for page in ["queue?queue=secret", "message?queue=secret&id=b1", "payload?queue=secret&id=b1", "family?family=mails"]:
        assert me.ask(page).status in (403, 404), page


@pytest.mark.parametrize("line", ["ann:$2b$xx:root", "ann:plain", ":token$00"])
def test_a_line_that_makes_no_sense_is_refused_at_the_start(program, tmp_path, line):
    path = tmp_path / "passwords"
    path.write_text(line)
    path.chmod(0o600)
    done = subprocess.run([program, "web", "--password-file", path], capture_output=True, text=True)
    assert done.returncode == 1 and "line 1" in done.stderr, done.stderr
