"""The pages of `dq web`: the running program, and a visitor of its pages."""

import html
import json
import re
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from html.parser import HTMLParser
from http.cookiejar import CookieJar
from pathlib import Path

from tests.harness.cli import Cli
from tests.harness.server import wait_for


class Web:
    """A running `dq web`, for `with`. It listens on a port that the system chooses."""

    def __init__(self, cli: Cli, log, *options, before=(), listen="127.0.0.1:0"):
        """The standard error of the program goes to the file `log`. `before` are options before the verb."""
        self.cli = cli
        self.args = [*map(str, before), "web", "--listen", listen, "--interval", "100ms", *map(str, options)]
        self.log_path = log
        # Another program on the same port, in another test, has another history.
        self.data = Path(log).with_suffix(".data")
        self.process = None

    def __enter__(self):
        with open(self.log_path, "w") as log:
            command = [self.cli.program, *self.args]
            self.process = subprocess.Popen(
                command, env={**self.cli.env(), "XDG_DATA_HOME": str(self.data)}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True
            )
        line = self.process.stdout.readline()
        assert line.startswith("dq web listens on http://"), (line, self.log_path.read_text())
        self.url = line.split()[-1] + "/"
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def visitor(self, **headers) -> "Visitor":
        return Visitor(self.url, headers)

    def audit(self) -> list:
        """The lines of the audit log, which go to its standard error."""
        return [json.loads(line) for line in self.log_path.read_text().splitlines() if line.startswith("{")]


class Page:
    """An answer: its status, headers and text."""

    def __init__(self, response):
        self.status = response.status
        self.headers = response.headers
        self.address = response.url
        self.body = response.read()
        self.text = self.body.decode(errors="replace")

    def words(self) -> str:
        """The text of the page without its tags, with single blanks."""
        text = re.sub(r"<(title|script)\b.*?</\1>", " ", self.text, flags=re.DOTALL)
        return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", text)).split())

    def links(self) -> dict:
        """The addresses of all links, by their words."""
        found = re.findall(r'<a [^>]*?href="([^"]*)"[^>]*>(.*?)</a>', self.text, re.DOTALL)
        return {html.unescape(re.sub(r"<[^>]*>", "", words)).strip(): html.unescape(address) for address, words in found}

    def elements(self) -> list:
        """All elements, as name and attributes, as a browser reads them."""
        parser = HTMLParser()
        found = []
        parser.handle_starttag = lambda tag, attributes: found.append((tag, attributes))
        parser.feed(self.text)
        # A browser ignores the second attribute of a name.
        assert all(len(dict(attributes)) == len(attributes) for _, attributes in found), found
        return [(tag, dict(attributes)) for tag, attributes in found]

    def csrf(self) -> str:
        return re.search(r'name="csrf" value="([^"]*)"', self.text)[1]

    def form(self) -> str:
        """The address that the last form of the page posts to."""
        return html.unescape(re.findall(r'<form [^>]*method="post" action="([^"]*)"', self.text)[-1])


class Visitor:
    """A visitor with cookies, who follows links and sends forms."""

    def __init__(self, url: str, headers: dict):
        self.url = url
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}
        self.cookies = CookieJar()
        self.opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self.cookies))

    def ask(self, address: str, form: dict | None = None, **headers) -> Page:
        data = None if form is None else urllib.parse.urlencode(form).encode()
        headers = {**self.headers, **{name.replace("_", "-"): value for name, value in headers.items()}}
        request = urllib.request.Request(urllib.parse.urljoin(self.url, address), data, headers)
        try:
            with self.opener.open(request, timeout=30) as response:
                return Page(response)
        except urllib.error.HTTPError as refused:
            return Page(refused)

    def get(self, address: str, status: int = 200, **fields) -> Page:
        """Asks for a page. Fields with a trailing underscore lose it."""
        query = urllib.parse.urlencode({name.rstrip("_"): value for name, value in fields.items()})
        got = self.ask(f"{address}?{query}" if query else address)
        assert got.status == status, (address, fields, got.status, got.words()[:500])
        return got

    def sees(self, address: str, *words: str, **fields) -> Page:
        """Waits until a page has these words: figures come every tenth of a second."""

        def whole():
            got = self.get(address, **fields)
            return got if all(word in got.words() for word in words) else None

        return wait_for(whole, 20, f"{words} on {address}")

    def act(self, **fields) -> Page:
        """Does something as a person would: asks for the confirmation, then confirms. The page of the outcome."""
        asked = self.get("confirm", **fields)
        return self.send(asked)

    def send(self, page: Page, **fields) -> Page:
        """Sends the form of a page, and waits for the outcome of the action."""
        fields = {name.rstrip("_"): value for name, value in fields.items()}
        done = self.ask(page.form(), {"csrf": page.csrf(), **fields})
        assert done.status == 200, done.words()
        if "job?" in done.address:

            def ended():
                got = self.ask(done.address)
                return got if "so far" not in got.words() else None

            return wait_for(ended, 30, "the end of the action")
        return done


def past(queue, steps, kind=None, ago=0):
    """A line of the file of a history: in each grain these steps, the newest of which ended a while ago."""
    now = int(time.time() * 1000)
    grains = [{"newest": (now - ago) // step - 1, "steps": steps} for step in (60_000, 300_000, 3_600_000)]
    names = {"queue": queue and queue.encode().hex(), "type": kind and kind.encode().hex()}
    return json.dumps({**names, "grains": grains}) + "\n"


def fill(do):
    """Dead messages of two types, one group that is held, another queue."""
    do("DQ.CREATE", "shop", "BACKOFF", "FIXED", 600000)
    for n in range(5):
        do("DQ.SEND", "shop", '{"n": %d}' % n, "ID", f"dead-{n}", "TYPE", "ab"[n % 2])
    for _, receipt, *_ in do("DQ.FETCH", "shop", "COUNT", 5):
        do("DQ.NACK", "shop", receipt, "FATAL", "ERROR", "HTTP 500")
    do("DQ.SEND", "mails", "x")
