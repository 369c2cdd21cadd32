"""The errors of dead messages in `dq web`: as they are, in lists, and grouped."""

import html
import re

import pytest

pytest_plugins = ["tests.harness.web_fixtures"]
pytestmark = pytest.mark.timeout(600)

TRACE = 'Traceback (most recent call last):\n  File "a.py", line 7, in run\n    send()\nOSError: no host 10.0.0.7'


def die(do, queue, id, error, **options):
    """A message that is dead with this error."""
    do("DQ.SEND", queue, options.get("payload", "x"), "ID", id, *options.get("words", ()))
    [[_, receipt, *_]] = do("DQ.FETCH", queue)
    do("DQ.NACK", queue, receipt, "FATAL", *(["ERROR", error] if error else []))


def test_an_error_has_its_line_breaks(web, r3):
    die(r3.execute_command, "q", "m", TRACE + "\x1b[2J")
    text = web.get("message", queue="q", id="m").text
    shown = re.search(r'<pre class="text bad">(.*?)</pre>', text, re.DOTALL)[1]
    assert shown.splitlines()[-1] == "OSError: no host 10.0.0.7\\x1b[2J" and "\\n" not in shown


def test_a_list_shows_the_exception(web, r3):
    die(r3.execute_command, "q", "m", TRACE)
    words = web.get("messages", queue="q", state="dead").words()
    assert "OSError: no host 10.0.0.7" in words and "Traceback" not in words


@pytest.fixture
def errors(r3):
    """Two queues and a family with dead messages of three errors, and one without an error."""
    do = r3.execute_command
    for n in range(5):
        die(do, "a", f"a{n}", f"order {10000 + n} is gone")
    die(do, "a", "t", TRACE)
    die(do, "b", "b0", "order 99999 is gone")
    die(do, "b", "b1", "HTTP [500]*")
    die(do, "b", "none", None)
    for key in do("DQ.PARTITIONS", "f", 2):
        die(do, key, "m", "order 77777 is gone")
    return r3


def rows(page) -> dict:
    """The count in the line of an error."""
    found = re.findall(r'data-label="messages">(\d+)</td><td class="grow">(.*?)</td>', page.text)
    return {re.sub("<[^>]*>", "", words): int(count) for count, words in found}


def test_dead_messages_are_grouped_by_error(web, errors):
    page = web.get("errors", queue="a")
    assert rows(page) == {"order 10004 is gone": 5, "OSError: no host 10.0.0.7": 1}
    assert rows(web.get("errors", family="f")) == {"order 77777 is gone": 2}
    everything = web.sees("errors", "11 messages looked at")
    assert sorted(rows(everything).values()) == [1, 1, 1, 8]
    assert "no error, reason rejected" in rows(everything)
    # The link of a group shows exactly its messages.
    shown = web.get(html.unescape(re.search(r'href="(messages[^"]*)">Show<', page.text)[1]))
    assert re.findall(r">(a\d)</span>", shown.text) == [f"a{n}" for n in range(5)]


def confirm(page, words, n=0):
    """The address behind the button of these words, in the line n."""
    found = re.findall(rf'href="(confirm[^"]*)"[^>]*>{words}<', page.text)
    return found[n].replace("&amp;", "&")


def test_these_are_redriven_in_all_their_queues(web, errors):
    do = errors.execute_command
    page = web.sees("errors", "11 messages looked at")
    asked = web.get(confirm(page, "Redrive these"))
    assert "This is about 8 messages" in asked.words()
    done = web.send(asked)
    assert "8 messages pending again" in done.words() and done.address.split("?")[0].endswith("/errors")
    assert [do("DQ.LEN", key, "dead") for key in ("a", "b", "f:{0}")] == [1, 2, 0]
    page = web.get("errors", queue="b")
    assert rows(page) == {"HTTP [500]*": 1, "no error, reason rejected": 1}
    # An error with the marks of a pattern is only itself; without an error nothing can be found.
    assert "1 message removed" in web.send(web.get(confirm(page, "Remove these"))).words()
    assert len(re.findall("Remove these", page.text)) == 1


def test_very_many_dead_messages_are_looked_at_for_a_limited_time(web, r3):
    do = r3.execute_command
    do("DQ.CREATE", "q", "TTL", 1)
    for _ in range(10):
        do("DQ.MSEND", "q", 20, *["x" * 100_000] * 20)
    page = web.get("errors", queue="q")
    assert "looked at" in page.words()
    # A page is there at once, and offers to take longer where there is more.
    assert ("there are more" in page.words()) == ("Look further" in page.links())
    further = web.get("errors", queue="q", further=1)
    assert "200 messages looked at" in further.words() and "Look further" not in further.links()


def test_hostile_errors_are_only_text(web, r3):
    evil = b"<script>\x00\xff*?[a-z]\\ \xe2\x80\xae"
    die(r3.execute_command, "q", "m", evil)
    page = web.get("errors", queue="q")
    assert "<script>" not in page.text.replace('<script src="dq.js" defer>', "")
    shown = web.get(page.links()["Show"])
    assert ">m</span>" in shown.text
