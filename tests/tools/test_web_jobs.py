"""The jobs for which people open dq web, each in at most three clicks from the page of queues.

A click is a link, a button, a box, or Enter in a field. What is typed is none. Each job is done by mouse, by keyboard
alone, and without JavaScript, and those that change nothing also with --read-only, which does not offer the others: all
that on a wide screen and on that of a phone.
"""

from dataclasses import dataclass

import pytest

from tests.harness.cli import Cli
from tests.harness.server import wait_for
from tests.harness.web import Web, past

pytest_plugins = ["tests.harness.browser_fixtures"]
pytestmark = pytest.mark.timeout(600)

MOST = 3
ENTER, TAB, SPACE = "\ue007", "\ue004", " "
# Within this many elements the keyboard reaches each.
STOPS = 150


def bar(words):
    """A link of the bar of pages."""
    return f"//header//a[normalize-space()='{words}']"


def main(words):
    """A link or a button of the page itself."""
    return f"//main//*[self::a or self::button][normalize-space()='{words}']"


def tile(words):
    return f"//a[contains(@class,'tile')][span='{words}']"


def box(queue):
    return f"//input[@name='pick'][@value='{queue}']"


@dataclass
class Typed:
    """What is typed into a field. With `enter` that is a click."""

    field: str
    text: str
    enter: bool = False


def by_id(id):
    return Typed("//header//input[@name='id']", id, enter=True)


@dataclass
class Job:
    """The question, the way, and the words of the answer. Steps from `acts` on change something."""

    question: str
    steps: list
    sees: list
    acts: int | None = None

    def clicks(self) -> int:
        return sum(step.enter if isinstance(step, Typed) else 1 for step in self.steps)


JOBS = [
    Job("Why is it late?", [by_id("o-2")], ["behind-head", "Until", "o-1"]),
    Job(
        "What is there of one user?",
        [bar("Find"), Typed("//input[@name='group']", "user-7"), main("Find")],
        ["o-1", "o-2", "o-3"],
    ),
    Job(
        "Run the 500 of one kind again.",
        [tile("dead"), main("Redrive these"), main("Redrive")],
        ["500 messages pending again"],
        acts=1,
    ),
    Job("Who holds it?", [bar("Workers")], ["worker-1", "r-1", "orders"]),
    Job("Is it getting worse since yesterday?", [main("7 days")], ["died in 1h max 900"]),
    Job("What does this flow wait for?", [by_id("flow"), main("the whole flow")], ["child-0", "dead", "child-1"]),
    Job("May I click this?", [main("orders"), main("Remove everything")], ["Remove?", "This is about", "removed for good"], acts=1),
    Job("What was in the one that failed?", [tile("dead"), main("HTTP 500")], ['"mail": ']),
    Job("Run this one again.", [by_id("other-1"), main("Redrive")], ["It can be delivered now"], acts=1),
    Job("Run this one now.", [by_id("later"), main("Run now")], ["It can be delivered now"], acts=1),
    Job("Stop this queue.", [main("orders"), main("Pause"), main("Pause")], ["Nothing is delivered."], acts=1),
    Job("Send one to try.", [main("mails"), main("Send a test message"), main("Send")], ["Sent, with the id"], acts=1),
    Job("What is sent next by the clock?", [bar("Schedules")], ["nightly", "orders"]),
    Job("Which limit is used up?", [main("orders")], ["api", "1 of 1"]),
    Job("What is set otherwise here?", [main("orders")], ["retries", "7", "usually"]),
    Job("Does it survive a restart?", [bar("Server")], ["appendonly is no"]),
    Job("Which of these two has more?", [box("orders"), box("mails"), main("Compare")], ["sent in 1m", "orders", "mails"]),
]


def fill(do) -> None:
    do("DQ.CREATE", "mails", "BACKOFF", "FIXED", 600_000)
    for error, count in (("HTTP 500", 500), ("no route", 3)):
        for n in range(count):
            do("DQ.SEND", "mails", '{"mail": %d}' % n, "ID", f"{'mail' if count == 500 else 'other'}-{n}", "TYPE", "mail")
        while given := do("DQ.FETCH", "mails", "COUNT", 100):
            for _, receipt, *_ in given:
                do("DQ.NACK", "mails", receipt, "FATAL", "ERROR", error)
    do("DQ.CREATE", "orders", "BACKOFF", "FIXED", 600_000, "RETRIES", 7)
    for n in range(1, 4):
        do("DQ.SEND", "orders", "x", "ID", f"o-{n}", "GROUP", "user-7")
    do("DQ.NACK", "orders", do("DQ.FETCH", "orders")[0][1], "ERROR", "HTTP 503")
    do("DQ.LIMIT", "orders", "api", "CONCURRENCY", 1)
    do("DQ.SEND", "orders", "x", "ID", "r-1", "LIMITS", 1, "api")
    do("DQ.FETCH", "orders", "CONSUMER", "worker-1", "LEASE", 3_600_000)
    do("DQ.SEND", "orders", "x", "ID", "flow", "CHILDREN", 2)
    for n in range(2):
        do("DQ.SEND", "orders", "x", "ID", f"child-{n}", "PARENT", "orders", "flow")
    do("DQ.NACK", "orders", do("DQ.FETCH", "orders")[0][1], "FATAL", "ERROR", "no such order")
    do("DQ.SEND", "orders", "x", "ID", "later", "DELAY", 3_600_000)
    do("DQ.SCHEDULE", "orders", "nightly", "CRON", "0 3 * * *", "PAYLOAD", "x")


class Person:
    """Goes through the pages in one way, and counts the clicks."""

    def __init__(self, browser, way: str):
        self.browser, self.way, self.clicks = browser, way, 0

    def find(self, path: str):
        """The element, once it is there."""

        def there():
            found = self.browser.driver.find_elements("xpath", path)
            return found[0] if found else None

        return wait_for(there, 30, f"{path} in the browser")

    def do(self, step) -> None:
        if isinstance(step, Typed):
            field = self.reach(step.field)
            field.send_keys(step.text, *([ENTER] if step.enter else []))
            self.clicks += step.enter
            return
        self.clicks += 1
        before = self.browser.driver.current_url
        if self.way == "keys":
            is_box = self.reach(step).get_attribute("type") == "checkbox"
            self.browser.press(SPACE if is_box else ENTER)
        else:
            self.again(step, lambda element: element.click())
            is_box = "@name='pick'" in step
        if not is_box:
            wait_for(lambda: self.browser.driver.current_url != before, 30, f"a page behind {step}")

    def again(self, path: str, act):
        """Acts on an element. One that the page has just replaced was not acted on: its successor is."""
        from selenium.common.exceptions import StaleElementReferenceException

        for _ in range(10):
            try:
                return act(self.find(path))
            except StaleElementReferenceException:
                continue
        raise AssertionError(f"{path} is replaced all the time")

    def reach(self, path: str):
        """The element. By keyboard alone the focus goes there step by step."""
        self.find(path)
        if self.way != "keys":
            return self.find(path)
        for _ in range(STOPS):
            if self.again(path, lambda element: self.browser.run("return document.activeElement === arguments[0]", element)):
                return self.find(path)
            self.browser.press(TAB)
        raise AssertionError(f"the keyboard does not reach {path}")


@pytest.fixture
def serve(program, server, tmp_path):
    """Starts dq web, with a history in which it gets worse."""
    running = []

    def serve(*options):
        path = tmp_path / "history"
        path.write_text(past(None, [[9, 9, 1, 5, 50]] * 24 + [[9, 9, 900, 5, 50]] * 12) + past("orders", [[5, 5, 0, 5, 50]] * 9))
        web = Web(Cli(program, f"redis://127.0.0.1:{server.port}"), tmp_path / "web.log", "--history", path, *options)
        running.append(web)
        return web.__enter__()

    yield serve
    for web in running:
        web.__exit__()


@pytest.mark.parametrize("width, height", [(1280, 900), (390, 844)])
@pytest.mark.parametrize("way", ["mouse", "keys", "no script", "read-only"])
def test_every_job_takes_three_clicks_at_most(r3, serve, clean, way, width, height):
    do = r3.execute_command
    web = serve(*(["--read-only"] if way == "read-only" else []))
    if way == "no script":
        clean.driver.execute_cdp_cmd("Network.enable", {})
        clean.driver.execute_cdp_cmd("Network.setBlockedURLs", {"urls": ["*/dq.js"]})
    is_fresh = False
    try:
        for job in JOBS:
            if not is_fresh:
                do("FLUSHALL")
                fill(do)
                web.visitor().sees("", "2 queues", "mails", "orders", "504 dead")
            clean.open(web.url)
            person = Person(clean, way)
            reads = job.acts is None or way != "read-only"
            is_fresh = job.acts is None or not reads
            for step in job.steps if reads else job.steps[: job.acts]:
                person.do(step)
            if reads:
                clean.sees(*job.sees)
                assert person.clicks == job.clicks() <= MOST, (job.question, person.clicks)
            else:
                clean.sees("read-only")
                assert not clean.driver.find_elements("xpath", job.steps[job.acts]), job.question
        # The script that was not loaded, if that is the way.
        clean.complaints()
    finally:
        if way == "no script":
            clean.driver.execute_cdp_cmd("Network.setBlockedURLs", {"urls": []})
