"""Every page of dq web in Chromium: on a wide screen and on that of a phone, light and dark, for all eyes and hands.

axe-core checks what WCAG 2.2 demands of a page (levels A and AA), and good practice.
"""

import re
import shutil
import subprocess
import uuid
from contextlib import contextmanager

import pytest

from tests.harness.cli import Cli
from tests.harness.optional import need
from tests.harness.server import ROOT
from tests.harness.web import Web, fill, past

pytest_plugins = ["tests.harness.browser_fixtures"]
pytestmark = pytest.mark.timeout(600)

AXE = "axe-core@4.14.1"
LONG = "a-name-without-any-blank-" * 12
# The pages in the bar of each page, of a queue, of a message with any name, of questions and forms, and of mistakes.
PAGES = ["", "messages", "errors", "workers", "schedules", "server", "history", "?sort=dead&span=7d"]
PAGES += [f"{page}?queue={LONG}" for page in ("queue", "errors", "types", "settings", "schedule", "limit", "send")]
PAGES += [f"{page}?queue={LONG}&id={LONG}" for page in ("message", "tree", "edit", "reschedule", "signal")]
PAGES += ["queue?queue=shop", "types?queue=shop&span=24h", f"history?pick=shop&pick={LONG}", "family?family=mails"]
PAGES += ["messages?queue=shop&state=dead", f"messages?queue={LONG}&state=ready", "messages?match=*&state=any&payload=x"]
PAGES += ["message?queue=shop&id=dead-0", "message?queue=shop&id=parent", "tree?queue=shop&id=parent", f"search?find={LONG}"]
PAGES += ["confirm?act=pause&queue=shop", "confirm?act=redrive&queue=shop&state=dead", "nope"]


@pytest.fixture(scope="module")
def axe():
    """The script of axe-core."""
    need(shutil.which("npm"), "npm")
    folder = ROOT / "target" / AXE.replace("@", "-")
    script = folder / "node_modules/axe-core/axe.min.js"
    if not script.exists():
        folder.mkdir(parents=True, exist_ok=True)
        command = ["npm", "install", "--prefix", ".", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", AXE]
        subprocess.run(command, cwd=folder, check=True)
    return script.read_text()


def violations(browser, axe) -> list[str]:
    """What is wrong on the page that is open: the rule, and the elements."""
    browser.run(axe)
    found = browser.driver.execute_async_script("axe.run().then(arguments[arguments.length - 1])")
    return [f"{one['id']}: {[node['html'][:200] for node in one['nodes'][:3]]}" for one in found["violations"]]


def stock(do) -> None:
    """A queue with everything that a page shows, and one in which all names are long."""
    fill(do)
    do("DQ.SEND", LONG, LONG, "ID", LONG, "GROUP", LONG, "TYPE", LONG)
    do("DQ.SEND", "shop", "p", "ID", "parent", "CHILDREN", 2)
    for n in range(2):
        do("DQ.SEND", "shop", "c", "ID", f"child-{n}", "PARENT", "shop", "parent", "PRIORITY", -9, "HEADERS", 1, "a", "b")
    do("DQ.NACK", "shop", do("DQ.FETCH", "shop")[0][1], "FATAL", "ERROR", "HTTP 500")
    do("DQ.SEND", "shop", "x", "GROUP", "g", "BATCH", "album", "LIMITS", 1, "api", "PRIORITY", -9)
    do("DQ.SEND", "shop", "x", "AFTER", "album")
    do("DQ.LIMIT", "shop", "api", "CONCURRENCY", 1)
    do("DQ.FETCH", "shop", "CONSUMER", "worker-1")
    do("DQ.PAUSE", "shop", "GROUP", "g")
    do("DQ.SCHEDULE", "shop", "nightly", "CRON", "0 3 * * *", "PAYLOAD", "x")
    for key in do("DQ.PARTITIONS", "mails", 4):
        do("DQ.SEND", key, "x")


def long_names(do) -> str:
    """Messages in all states whose ids, groups and consumers are UUIDs. Returns the id of a parent."""

    def name(of) -> str:
        return str(uuid.uuid5(uuid.NAMESPACE_OID, str(of)))

    orders, images = "orders.fulfilment.eu-west-1", "images.thumbnails"
    do("DQ.CREATE", images, "RETRIES", 0, "RETAIN", 600_000)
    do("DQ.SEND", orders, '{"order": 1}', "ID", name("parent"), "CHILDREN", 12, "TYPE", "publish.album")
    for n in range(12):
        payload = '{"user": "%s", "note": "more than a line"}' % name(n)
        words = ["ID", name(n), "TYPE", ["image.scale", "image.resize.large"][n % 2], "GROUP", f"user:{name(n)}"]
        do("DQ.SEND", images, payload, *words, "PARENT", orders, name("parent"))
    error = "ConnectionRefusedError: [Errno 111] could not reach thumbnails.internal.example.com:8443"
    for n, (_, receipt, *_) in enumerate(do("DQ.FETCH", images, "COUNT", 9, "CONSUMER", "web-1.prod.example.com:4711", "LEASE", 600_000)):
        if n % 3 == 0:
            do("DQ.ACK", images, receipt, "RESULT", "640x480")
        if n % 3 == 1:
            do("DQ.NACK", images, receipt, "FATAL", "ERROR", error)
    for n in range(3):
        do("DQ.SEND", orders, "x", "ID", name(f"order {n}"), "GROUP", f"user-{n}")
        do("DQ.PAUSE", orders, "GROUP", f"user-{n}")
    do("DQ.RESUME", orders, "GROUP", "user-0")
    do("DQ.SEND", orders, "x", "ID", name("order"))
    do("DQ.FETCH", orders, "COUNT", 2, "CONSUMER", name("consumer"), "LEASE", 600_000)
    return name("parent")


@contextmanager
def emulated(browser, scheme, width, height):
    """The screen, until the end."""
    browser.emulate(scheme, width, height)
    try:
        yield
    finally:
        browser.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width, height", [(1280, 900), (390, 844)])
def test_every_page_fits_its_screen_and_is_accessible(program, server, r3, clean, axe, tmp_path, scheme, width, height):
    stock(r3.execute_command)
    (tmp_path / "history").write_text("".join(past(queue, [[3, 1, 0, 2, 9]] * 9) for queue in (None, "shop", LONG)))
    with open(tmp_path / "history", "a") as history:
        history.write(past("shop", [[2, 400, 300]] * 9, "mail"))
    bad = []
    cli = Cli(program, f"redis://127.0.0.1:{server.port}")
    with Web(cli, tmp_path / "web.log", "--history", tmp_path / "history") as web, emulated(clean, scheme, width, height):
        clean.open(web.url)
        clean.sees("3 queues and 1 family")
        visitor = web.visitor()
        asked = visitor.get("confirm", act="pause", queue=LONG)
        job = visitor.ask(asked.form(), {"csrf": asked.csrf()}).address.removeprefix(web.url)
        for page in [*PAGES, job]:
            clean.open(web.url + page)
            clean.sees("dq")
            wide = clean.run("return document.documentElement.scrollWidth")
            assert wide <= width, (page, wide)
            paper, ink = clean.run("const s = getComputedStyle(document.body); return [s.backgroundColor, s.color]")
            levels = [sum(map(int, re.findall(r"\d+", colour)[:3])) for colour in (paper, ink)]
            assert (levels[0] > levels[1]) == (scheme == "light"), (page, paper, ink)
            bad += [f"{page[:60]}  {one}" for one in violations(clean, axe)]
    # The browser logs a complaint about a page that does not exist.
    clean.complaints()
    assert not bad, "\n".join(bad)


def test_columns_are_as_wide_as_what_they_have(site, r3, clean):
    parent = long_names(r3.execute_command)
    pages = [f"messages?queues=*&state={state}" for state in ("running", "ready", "dead", "finished", "held", "any&payload=*")]
    pages += ["messages?queue=images.thumbnails&state=dead", "errors", "workers", "queue?queue=images.thumbnails&groups=all"]
    pages += [f"{page}?queue=orders.fulfilment.eu-west-1&id={parent}" for page in ("queue", "message")]
    lines = """
        const lines = (e) => {
          const range = document.createRange(); range.selectNodeContents(e);
          return new Set([...range.getClientRects()].map((one) => Math.round(one.top))).size; };
        return [...document.querySelectorAll('main td .name')].map((e) => [e.innerText, e.closest('.long') ? 1 : 0, lines(e)])"""
    bad = []
    with emulated(clean, "light", 1280, 900):
        clean.open(site.url)
        clean.sees("2 queues")
        for page in pages:
            clean.open(site.url + page)
            clean.sees("dq")
            wide = clean.run("return document.documentElement.scrollWidth")
            rows = clean.run("return [...document.querySelectorAll('main tbody tr')].map((row) => row.offsetHeight)")
            # Half of a UUID in a line, or with its `user:` a third. The error has some 90 characters.
            broken = [name for name, is_long, lines in clean.run(lines) if lines > (3 if is_long else 1)]
            bad += [(page, wide, max(rows), broken)] if wide > 1280 or max(rows) > 190 or broken else []
    assert not bad, bad


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_pages_of_a_visitor_who_is_not_in_are_accessible(program, server, r3, clean, axe, tmp_path, scheme):
    stock(r3.execute_command)
    cli = Cli(program, f"redis://127.0.0.1:{server.port}")
    made = subprocess.run([program, "web", "--hash-password", "ann"], input="correct horse\n", capture_output=True, text=True, check=True)
    (tmp_path / "passwords").write_text(made.stdout.strip() + ":viewer:shop*\n")
    with emulated(clean, scheme, 390, 844):
        with Web(cli, tmp_path / "a.log", "--password-file", tmp_path / "passwords") as web:
            clean.open(web.url)
            clean.press("ann", "\ue004", "wrong", "\ue007")
            clean.sees("Wrong name or password")
            assert violations(clean, axe) == []
            clean.press("correct horse", "\ue007")
            clean.sees("sign out", "shop")
            assert violations(clean, axe) == []
        with Web(cli, tmp_path / "b.log", "--user-header", "X-User") as web:
            clean.open(web.url)
            clean.sees("No access")
            assert violations(clean, axe) == []
    # The browser says that the answers were 403.
    clean.complaints()
