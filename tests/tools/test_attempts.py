"""The errors of earlier attempts (ERRORS), where a message is shown: on its page, as JSON and in a terminal."""

import json

import pytest

pytest_plugins = ["tests.harness.web_fixtures"]
pytestmark = pytest.mark.timeout(300)

TRACE = "Traceback (most recent call last):\n  File x, line 1\nKeyError: 'mail <b>'"


def fail(do, queue, *errors):
    """Fails the message once for each of these errors, a second apart."""
    for i, error in enumerate(errors, 1):
        receipt = do("DQ.FETCH", queue, "CONSUMER", f"w{i}")[0][1]
        do("DQ.TICK", queue, "ADVANCE", 1000)
        do("DQ.NACK", queue, receipt, "ERROR", error)


def make(do, kept):
    do("DQ.CREATE", "q", "CLOCK", "MANUAL", 1_760_000_000_000, "ERRORS", kept, "BACKOFF", "FIXED", 0, "LEASE", 60_000)
    do("DQ.SEND", "q", "x", "ID", "m")


def test_the_page_of_a_message_has_the_errors_of_earlier_attempts(web, r3):
    do = r3.execute_command
    make(do, 5)
    assert "Failed attempts" not in web.get("message", queue="q", id="m").words()
    fail(do, "q", "HTTP 500\n  body", TRACE)
    page = web.get("message", queue="q", id="m")
    words = page.words()
    assert "attempt 1 failed at w1: HTTP 500" in words and "attempt 2 failed at w2: KeyError: 'mail <b>'" in words
    # All lines of each attempt are printed, the newest attempt first.
    assert words.index("attempt 2, 2025") < words.index("attempt 1, 2025")
    assert "HTTP 500\n  body</pre>" in page.text and "line 1\nKeyError: 'mail &lt;b&gt;'</pre>" in page.text
    told = json.loads(web.get("api/message", queue="q", id="m").text)
    assert [(n, at - 1_760_000_000_000, who) for n, at, who, _ in told["errors"]] == [(1, 1000, "w1"), (2, 2000, "w2")]
    assert told["errors"][1][3] == TRACE
    listed = json.loads(web.get("api/messages", queue="q", state="ready").text)
    assert listed["messages"][0]["errors"] == told["errors"]


def test_the_page_says_that_a_queue_keeps_no_errors(web, r3):
    do = r3.execute_command
    make(do, 0)
    fail(do, "q", "one")
    assert "are not kept" not in web.get("message", queue="q", id="m").words(), "it is the only one"
    fail(do, "q", "two")
    page = web.get("message", queue="q", id="m")
    assert "The errors of earlier attempts are not kept: ERRORS of the queue is 0." in page.words()
    form = web.get(page.links()["Change settings"])
    assert 'name="errors" value="0"' in form.text and "of the last failed attempts" in form.text
    done = web.send(form, errors="5", maxtimeouts="3", sure=1)
    assert "Changed: maxtimeouts, errors." in done.words()
    assert done.address.startswith(f"{web.url}message?"), "back at the message"
    info = do("DQ.INFO", "q")
    assert (info[b"errors"], info[b"maxtimeouts"]) == (5, 3)


def test_a_terminal_shows_the_errors_of_earlier_attempts(dq, r3):
    do = r3.execute_command
    make(do, 2)
    fail(do, "q", "zero", "HTTP 500\nbo\x1bdy", "")
    shown = dq("show", "q", "m").stdout
    second = "attempt 2 failed 2025-10-09 08:53:22.000Z (1.0s ago), at w2\n  HTTP 500\n  bo\\x1bdy\n"
    third = "attempt 3 failed 2025-10-09 08:53:23.000Z (now), at w3\n"
    assert f"\n\n{second}\n{third}" in shown and "zero" not in shown
    assert "\nerrors " not in shown
    told = json.loads(dq("show", "q", "m", "--json").stdout)
    assert [error[3] for error in told["errors"]] == ["HTTP 500\nbo\x1bdy", ""]
    assert json.loads(dq("peek", "q", "--json").stdout)[0]["errors"] == told["errors"]


def test_errors_and_timeouts_are_options_of_queues_and_messages(dq, r3):
    do = r3.execute_command
    dq("create", "q", "errors", "2", "maxtimeouts", "4")
    info = do("DQ.INFO", "q")
    assert (info[b"errors"], info[b"maxtimeouts"]) == (2, 4)
    dq("alter", "q", "errors=3", "maxtimeouts=0")
    info = do("DQ.INFO", "q")
    assert (info[b"errors"], info[b"maxtimeouts"]) == (3, 0)
    assert "ERRORS must be" in dq("alter", "q", "errors", "101", code=1).stderr
    do("DEL", "q")
    do("DQ.CREATE", "q", "CLOCK", "MANUAL", 1000, "BACKOFF", "FIXED", 0, "LEASE", 60_000)
    dq("send", "q", "x", "--id", "m", "--errors", "1", "--max-timeouts", "1")
    fail(do, "q", "a", "b")
    assert [error[3] for error in do("DQ.GET", "q", "m")[b"errors"]] == [b"b"]
    do("DQ.FETCH", "q")
    do("DQ.TICK", "q", "ADVANCE", 60_000)
    assert do("DQ.GET", "q", "m")[b"reason"] == b"timeouts"
