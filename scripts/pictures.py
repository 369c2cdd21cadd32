#!/usr/bin/env python3
"""Draws docs/pictures/: the screens of `dq top`, as a real terminal (tmux) shows them, and the pages of `dq web`, as
Chromium shows them, over queues with real traffic.

    scripts/python.sh scripts.pictures

The pictures of the terminal are SVG, and what is text on the screen is text in them. The pictures of the pages are PNG.
Takes a minute. DQ_CLI names the program; without, it is built from cli/.
"""

import random
import re
import tempfile
import threading
import time
from pathlib import Path
from xml.sax.saxutils import escape

import redis

from tests.harness.browser import Browser
from tests.harness.cli import Cli, Screen, build
from tests.harness.server import ROOT, Server
from tests.harness.web import Web, past

PICTURES = ROOT / "docs/pictures"

# ---- a screen as SVG

CELL_WIDTH, CELL_HEIGHT, BASELINE, MARGIN = 8.4, 18, 13, 12
PAPER, INK, FAINT = "#16181d", "#d7dae0", "#8b919c"
# The codes for style that `dq top` uses of a terminal, and its colours. An end of schedules, in Unix milliseconds.
END_OF_2027 = 1_830_297_599_000
STYLES = {"1": "bold", "2": "dim", "7": "reversed"}
COLOURS = {"38;5;1": "#ff7b72", "38;5;3": "#e3b341"}
USUAL_COLOURS = {"39", "49"}
CODE = re.compile(r"\x1b\[([\d;]*)m")


def runs(lines: list[str]) -> list[tuple[int, int, str, frozenset]]:
    """The pieces of a captured screen with the same style: row, column, text, style.

    Every character is one column wide. A style goes on over the ends of lines.
    """
    found, style = [], frozenset()
    for row, line in enumerate(lines):
        column = 0
        for number, part in enumerate(CODE.split(line)):
            if number % 2 == 0:
                if part:
                    found.append((row, column, part, style))
                column += len(part)
                continue
            for code in re.findall(r"38;5;\d+|\d+", part) or ["0"]:
                if code == "0":
                    style = frozenset()
                elif code in USUAL_COLOURS:
                    style = style.difference(COLOURS.values())
                elif code in COLOURS:
                    style = style.difference(COLOURS.values()) | {COLOURS[code]}
                else:
                    style |= {STYLES[code]}
    return found


def svg(lines: list[str], columns: int, title: str) -> str:
    """A captured screen. Each piece is pulled to its exact width, so that columns hold with any font."""
    width, height = columns * CELL_WIDTH + 2 * MARGIN, len(lines) * CELL_HEIGHT + 2 * MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img"'
        ' font-family="ui-monospace, DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="14">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{width:g}" height="{height:g}" rx="8" fill="{PAPER}"/>',
    ]
    for row, column, text, style in runs(lines):
        x, y = MARGIN + column * CELL_WIDTH, MARGIN + row * CELL_HEIGHT
        [ink] = style.intersection(COLOURS.values()) or [FAINT if "dim" in style else INK]
        if "reversed" in style:
            size = f'width="{len(text) * CELL_WIDTH:g}" height="{CELL_HEIGHT}"'
            parts.append(f'<rect x="{x:g}" y="{y:g}" {size} fill="{ink}"/>')
            ink = PAPER
        shown = text.rstrip()
        if shown:
            bold = ' font-weight="bold"' if "bold" in style else ""
            length = f'textLength="{len(shown) * CELL_WIDTH:g}" lengthAdjust="spacingAndGlyphs"'
            place = f'x="{x:g}" y="{y + BASELINE:g}" {length}'
            parts.append(f'<text {place} xml:space="preserve" fill="{ink}"{bold}>{escape(shown)}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


# ---- something to look at


class Shop:
    """Traffic on four queues: a quick one, one that is overdue, one with failing groups, and a paused one."""

    def __init__(self, port: int):
        self.port = port
        self.ended = threading.Event()
        self.threads = []
        do = self.client().execute_command
        do("DQ.CREATE", "orders", "RETAIN", 600_000, "BACKOFF", "FIXED", 120_000)
        do("DQ.SEND", "reports", "monthly")
        do("DQ.PAUSE", "reports")
        do("DQ.MSEND", "mails", 40, *["newsletter"] * 40, "DELAY", 600_000)
        for _ in range(3):
            do("DQ.SEND", "mails", "to nobody", "RETRIES", 0, "PRIORITY", -1)
            do("DQ.NACK", "mails", do("DQ.FETCH", "mails")[0][1], "FATAL")

    def client(self) -> redis.Redis:
        return redis.Redis(port=self.port, protocol=3)

    def repeat(self, every: float, act) -> None:
        """Runs act(command) repeatedly in a separate thread with its own connection."""

        def loop():
            do = self.client().execute_command
            while not self.ended.wait(random.uniform(0.5, 1.5) * every):
                act(do)

        self.threads.append(threading.Thread(target=loop))
        self.threads[-1].start()

    def open(self) -> None:
        self.repeat(0.01, lambda do: do("DQ.SEND", "invoices", "x"))
        self.repeat(0.005, lambda do: self.work(do, "invoices", "biller", 0))
        self.repeat(0.04, lambda do: do("DQ.SEND", "mails", "x"))
        self.repeat(0.01, lambda do: self.work(do, "mails", "mailer", 0.04))
        for step in ("created", "paid", "shipped"):
            self.repeat(0.02, lambda do, step=step: self.order(do, step))
        for number in range(3):
            self.repeat(0.005, lambda do, number=number: self.work(do, "orders", f"billing-{number + 1}", 0.005))

    def order(self, do, step: str) -> None:
        user = random.choice([1, 2, 3, 5, 6, 7, 8])  # the others are held
        do("DQ.SEND", "orders", step, "GROUP", f"user-{user}", "TYPE", step)

    def work(self, do, queue: str, consumer: str, seconds: float) -> None:
        for _, receipt, *_ in do("DQ.FETCH", queue, "BLOCK", 200, "CONSUMER", consumer):
            time.sleep(seconds)
            do("DQ.ACK", queue, receipt)

    def close(self) -> None:
        self.ended.set()
        for thread in self.threads:
            thread.join()


def hold(do) -> None:
    """Two groups of orders whose first message failed, and two messages behind each."""
    for user in (4, 9):
        for step in ("created", "paid", "shipped"):
            do("DQ.SEND", "orders", step, "GROUP", f"user-{user}", "ID", f"order-{user}-{step}", "PRIORITY", -1)
        [(_, receipt, *_)] = do("DQ.FETCH", "orders", "GROUP", f"user-{user}", "CONSUMER", "billing-1")
        do("DQ.NACK", "orders", receipt, "ERROR", "HTTP 500")


def draw(name: str, title: str, screen: Screen) -> None:
    path = PICTURES / name
    path.write_text(svg(screen.styled_lines(), 80, title))
    print(path.relative_to(ROOT))


def photograph(url: str) -> None:
    """The pages of dq web, in the light and the dark scheme."""
    with Browser(1180, 760) as browser:
        for name, page, sees, scheme, height in [
            ("web.png", "", ["orders", "events:{*}"], "light", 680),
            ("web-history.png", "history?span=24h", ["orders", "mails"], "light", 720),
            ("web-queue.png", "queue?queue=orders", ["user-4", "album-7", "billing-1"], "light", 1200),
            ("web-errors.png", "errors", ["HTTP 500", "ConnectionError"], "light", 330),
            ("web-message.png", "message?queue=orders&id=order-3-paid", ["HTTP 500", "died", "attempt 2"], "dark", 1000),
        ]:
            browser.emulate(scheme, 1180, height)
            browser.open(url + page)
            browser.sees(*sees)
            browser.driver.save_screenshot(str(PICTURES / name))
            print(f"docs/pictures/{name}")


def day(there: Path) -> Path:
    """The file of a history that began before: a working day, with a bad hour in its afternoon."""

    def steps(scale: int) -> list:
        chance = random.Random(scale)
        made = []
        for n in range(288):
            busy = scale * (1 + 4 * max(0.0, 1 - abs(n - 170) / 110)) * chance.uniform(0.9, 1.1)
            bad = 200 < n < 214
            acked = busy * (0.7 if bad else 1.0)
            made.append([int(busy), int(acked), int(scale / 9) if bad else 0, int(busy * (0.9 if bad else 0.1)), 9000 if bad else 40])
        return made

    path = there / "history"
    queues = {"orders": 90, "mails": 60, "invoices": 25, None: 190}
    path.write_text("".join(past(queue, steps(scale)) for queue, scale in queues.items()))
    return path


def show_more(do) -> None:
    """The other parts that the pages show: a dead message with a payload, a batch, a schedule, a family."""
    payload = '{"order": 3, "user": "user-3", "total": 129.90, "lines": [{"sku": "A-17", "count": 2}]}'
    headers = ["HEADERS", 2, "tenant", "eu-1", "trace", "4bf92f35"]
    do("DQ.SEND", "orders", payload, "ID", "order-3-paid", "TYPE", "paid", "PRIORITY", -2, "RETRIES", 2, "ERRORS", 5, *headers)
    for worker, error in ((2, "HTTP 503 from the bank"), (1, "HTTP 503 from the bank"), (2, "HTTP 500 from the mail relay")):
        [(_, receipt, *_)] = do("DQ.FETCH", "orders", "CONSUMER", f"billing-{worker}")
        do("DQ.TOUCH", "orders", 30_000, receipt, "NOTE", "charged, receipt not sent")
        do("DQ.NACK", "orders", receipt, "DELAY", 0, "ERROR", error)
    # Similar errors, in two queues: the error of a traceback is its last line.
    for queue, count in (("mails", 7), ("invoices", 3)):
        do("DQ.MSEND", queue, count, *["x"] * count, "RETRIES", 0, "GROUP", "relay", "PRIORITY", -5)
        for _ in range(count):
            [(_, receipt, *_)] = do("DQ.FETCH", queue, "GROUP", "relay")
            trace = 'Traceback (most recent call last):\n  File "send.py", line 31, in send\n    relay.send(mail)\n'
            do("DQ.NACK", queue, receipt, "ERROR", trace + f"ConnectionError: relay-2 refused mail {receipt % 90000 + 10000}")
    do("DQ.MSEND", "orders", 12, *["scale"] * 12, "BATCH", "album-7", "DELAY", 600_000)
    do("DQ.SEND", "orders", "publish", "ID", "publish-7", "AFTER", "album-7")
    do("DQ.SCHEDULE", "orders", "nightly-report", "CRON", "0 3 * * *", "TZ", "Europe/Berlin", "PAYLOAD", "x", "UNTIL", END_OF_2027, "JITTER", 60_000)
    for key in do("DQ.PARTITIONS", "events", 16):
        do("DQ.MSEND", key, 20, *["x"] * 20)


def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    server = Server(appendonly="yes").start()
    shop = Shop(server.port)
    try:
        do = shop.client().execute_command
        hold(do)
        show_more(do)
        shop.open()
        cli = Cli(build(), f"redis://127.0.0.1:{server.port}")
        with Screen(cli, "top") as screen:
            screen.sees("orders", "events")
            while "── orders ──" not in screen.text():
                screen.press("Down")
                time.sleep(0.5)
            time.sleep(20)  # until the bars of lateness reach back
            draw("top.svg", "dq top: the queues of a server, with rates, states and lateness", screen)
            screen.press("Enter")
            screen.sees("redelivered")
            draw("top-queue.svg", "dq top: one queue, its consumers and its held groups", screen)
            screen.press("g")
            screen.sees(">user-4", "its backoff ends")
            draw("top-groups.svg", "dq top: the groups that are held, by what, and until when", screen)
        with tempfile.TemporaryDirectory() as there, Web(cli, Path(there) / "log", "--history", day(Path(there))) as web:
            time.sleep(15)  # until the charts reach back
            photograph(web.url)
    finally:
        shop.close()
        server.close()


if __name__ == "__main__":
    main()
