"""`dq top` in a real terminal: the screen, and the keys."""

import re

import pytest

from tests.harness.cli import Cli, Screen
from tests.harness.optional import needs
from tests.harness.server import wait_for

pytest_plugins = ["tests.harness.cli_fixtures"]
pytestmark = [pytest.mark.timeout(600), needs("tmux")]


@pytest.fixture
def shop(r3):
    """mails: one ready message. shop: a group held by a failed message, another group's turn, a dead message."""
    do = r3.execute_command
    do("DQ.SEND", "mails", "hello")
    do("DQ.CREATE", "shop", "BACKOFF", "FIXED", 600000)
    for id, group in [("a1", "ann"), ("a2", "ann"), ("b1", "bob")]:
        do("DQ.SEND", "shop", "x", "ID", id, "GROUP", group)
    do("DQ.SEND", "shop", "x", "ID", "dead")
    for id, receipt, *_ in do("DQ.FETCH", "shop", "COUNT", 10, "CONSUMER", "worker-1"):
        if id in (b"a1", b"dead"):
            do("DQ.NACK", "shop", receipt, *(["FATAL"] if id == b"dead" else []))
    return r3


def row(screen, name):
    """The cells of a queue in the list, without its mark; none where it is not on the screen."""
    line = next((line for line in screen.lines() if re.match(rf"[> ]{name}\b", line)), "")
    return line[1:].split()


def shows(screen, name, *cells):
    """Waits until the row of a queue begins with these cells."""
    wait_for(lambda: row(screen, name)[: len(cells) + 1] == [name, *cells], 20, f"{name} with {cells}")


def test_every_screen_shows_its_figures(dq, shop):
    with Screen(dq, "top", "--interval", "200ms") as screen:
        screen.sees("2 queues", ">shop", " mails", "? help")
        shows(screen, "mails", "1", "0", "0", "0", "0")
        shows(screen, "shop", "0", "1", "1", "1", "1")
        screen.press("Down")
        screen.sees(">mails")
        screen.press("Up")
        screen.sees(">shop", "held: ann (2 waiting): ")
        screen.press("Enter")
        screen.sees("── shop ──", "retry            1 #", "redelivered", "worker-1  running 1", "held: ann")
        screen.press("g")
        text = screen.sees("shop: held groups", ">ann", "Its first message is a1, due in 9m")
        assert re.search(r">ann +blocked +2 +0 +a1 +in 9m\d+s +backoff", text)
        screen.press("f")
        screen.sees("shop: blocked groups", ">ann")
        screen.press("f")
        screen.sees("shop: paused groups", "there are none")
        screen.press("f")
        screen.sees("shop: running groups", ">bob")
        screen.press("?")
        screen.sees("any key closes this", "LATENESS  what the oldest one had waited")
        screen.press("x")
        screen.press("Escape")
        screen.sees("── shop ──", "redelivered")
        screen.press("Escape")
        screen.sees(">shop", " mails")
        assert max(map(len, screen.lines())) <= 80
        screen.press("q")
        # The screen is the same as before.
        assert "dq top" not in screen.sees("ended with 0")


def test_every_key_of_the_help_works(dq, r3):
    """The keys of the help that move the selection, sort the list, and end the program."""
    for n in range(40):
        r3.execute_command("DQ.SEND", f"q{n:02}", "x", *(["RETRIES", 0] if n == 5 else []))
    r3.execute_command("DQ.SEND", "q07", "x")
    r3.execute_command("DQ.NACK", "q05", r3.execute_command("DQ.FETCH", "q05")[0][1], "FATAL")
    with Screen(dq, "top", "--interval", "200ms") as screen:
        screen.sees(">q05", " q00")
        screen.press("s")
        screen.sees("sorted by name")
        screen.press("Home")
        screen.sees(">q00")
        for keys, selected in [
            (["j"], ">q01"),
            (["k"], ">q00"),
            (["Up"], ">q00"),
            (["End"], ">q39"),
            (["Down"], ">q39"),
            (["Home"], ">q00"),
            (["PPage"], ">q00"),
            (["NPage"] * 9, ">q39"),
            (["Home"], ">q00"),
        ]:
            screen.press(*keys)
            screen.sees(selected)
        screen.press("Right")
        screen.sees("── q00 ──", "redelivered")
        screen.press("Right")
        screen.sees("q00: held groups")
        screen.press("Left")
        screen.sees("── q00 ──", "redelivered")
        screen.press("Left")
        screen.sees(">q00", " q01")
        for word, first in [("oldest", None), ("ready + running", "q07"), ("dead", "q05")]:
            screen.press("s")
            screen.sees(f"sorted by {word}")
            if first is not None:
                wait_for(lambda: screen.lines()[2][1:].startswith(first), 20, f"{first} on top")
        screen.press("s")
        wait_for(lambda: "sorted by" not in screen.text(), 10, "the order of trouble")
        screen.press("/", "q", "3")
        screen.sees("/q3_", ">q30", " q39")
        assert not row(screen, "q29")
        screen.press("Enter")
        screen.sees('only names with "q3"')
        screen.press("Escape")
        screen.sees(" q29")
        screen.press("Home")
        screen.press("?")
        text = screen.sees("any key closes this")
        for key in ("PgUp PgDn Home End", "esc, left", "enter, right", "g  ", "f  ", "s  ", "p  ", "r  ", "q, ctrl-c"):
            assert key in text
        screen.press("q")
        screen.sees(">q05")
        screen.press("C-c")
        screen.sees("ended with 0")


def test_top_can_be_limited_to_some_queues(dq, shop):
    for args in (["--match", "'sh*'"], ["'sh*'"]):
        with Screen(dq, "top", *args) as screen:
            screen.sees("1 queue,", ">shop")
    with Screen(dq, "top", "mails") as screen:
        screen.sees("1 queue,", ">mails")


def test_top_works_over_tls_as_a_user(program, tls_url, certificates):
    files = [f"--{name} {certificates / file}" for name, file in (("cacert", "ca.crt"), ("cert", "own.crt"), ("key", "own.key"))]
    with Screen(Cli(program, tls_url), *files, "top") as screen:
        assert "pa55" not in screen.sees("dq top  localhost:", ">q ")


def test_rates_and_waiters_are_updated(dq, shop):
    with Screen(dq, "top", "--interval", "200ms") as screen:
        screen.sees(" mails")

        def sent():
            for _ in range(10):
                shop.execute_command("DQ.MSEND", "mails", 20, *["x"] * 20)
            cells = row(screen, "mails")
            return len(cells) > 6 and cells[6].isdigit() and int(cells[6]) > 100

        wait_for(sent, 20, "a rate")

        def waited():
            # A message has been ready for more than a second, or ten: the newest bar is that high.
            cells = row(screen, "mails")
            return len(cells) > 9 and cells[8].endswith("s") and cells[-1][-1] in "▄▅"

        wait_for(waited, 20, "a higher bar")


def test_pause_and_resume_ask_for_confirmation(dq, shop):
    def paused():
        return shop.execute_command("DQ.INFO", "mails")[b"paused"]

    with Screen(dq, "top", "--interval", "200ms") as screen:
        screen.sees(">shop")
        screen.press("Down")
        screen.sees(">mails")
        screen.press("p")
        screen.sees("Pause mails?", "y: yes")
        screen.press("n")
        screen.sees("* nothing was changed")
        assert not paused()
        screen.press("p")
        screen.press("y")
        screen.sees("* mails is paused", ">mails PAUSED", "── mails - PAUSED ──")
        assert paused()
        screen.press("p")
        screen.sees("Resume mails?")
        screen.press("y")
        screen.sees("* mails goes on")
        assert not paused()
        screen.press("Up")
        screen.press("g")
        screen.sees(">ann")
        screen.press("p")
        screen.sees("Pause group ann of shop?")
        screen.press("y")
        screen.sees("* group ann of shop is paused")
        wait_for(lambda: "paused" in " ".join(row(screen, "ann")), 20, "the paused group among the held ones")
        screen.press("f")
        screen.sees("shop: blocked groups", "there are none")


def test_redrive_asks_for_confirmation(dq, shop):
    with Screen(dq, "top", "--interval", "200ms") as screen:
        screen.sees(">shop")
        screen.press("Down")
        screen.sees(">mails")
        screen.press("r")
        screen.sees("* mails has no dead messages")
        screen.press("Up")
        screen.press("r")
        screen.sees("Redrive 1 dead message of shop?")
        screen.press("y")
        screen.sees("* shop: 1 message pending again")
        wait_for(lambda: row(screen, "shop")[5:6] == ["0"], what="no dead message in the list")
        assert shop.execute_command("DQ.LEN", "shop", "dead") == 0


def test_new_and_deleted_queues_are_noticed(dq, r3):
    with Screen(dq, "top", "--interval", "200ms") as screen:
        screen.sees("no queues here")
        r3.execute_command("DQ.SEND", "new", "x")
        screen.sees(">new", timeout=20)
        screen.press("Enter")
        screen.sees("── new ──")
        r3.delete("new")
        screen.sees("no queues here")


def test_a_lost_connection_is_shown_and_restored(program, make_server):
    server = make_server(appendonly="yes")
    server.client().execute_command("DQ.SEND", "kept", "x")
    with Screen(Cli(program, f"redis://127.0.0.1:{server.port}"), "top", "--interval", "200ms") as screen:
        screen.sees(">kept")
        server.stop()
        screen.sees("! no connection", "trying again", ">kept")
        server.start()
        wait_for(lambda: "!" not in screen.text(), 20, "the connection")
        screen.sees(">kept")


def test_a_refused_command_is_shown(program, server, shop):
    shop.execute_command(
        *"ACL SETUSER viewer on >pa55 ~* -@all +scan +hello +select +dq.info +dq.groups +dq.explain +dq.consumers".split()
    )
    try:
        with Screen(Cli(program, f"redis://viewer:pa55@127.0.0.1:{server.port}"), "top") as screen:
            screen.sees(">shop")
            screen.press("p")
            screen.sees("Pause shop?")
            screen.press("y")
            screen.sees("* not done: NOPERM")
            assert "pa55" not in screen.text()
    finally:
        shop.execute_command("ACL", "DELUSER", "viewer")


def test_the_screen_adapts_to_the_size_of_the_terminal(dq, shop):
    with Screen(dq, "top", "--interval", "200ms", columns=132, rows=43) as screen:
        screen.sees(">shop", "── shop ──")
        for columns, rows in [(40, 10), (20, 5), (200, 50)]:
            screen.resize(columns, rows)
            wait_for(lambda: len(screen.lines()[0]) <= columns, what="the new size")
            screen.press("g", "Left", "Left")
        screen.sees(">shop", "── shop ──")


def test_names_cannot_control_the_terminal(dq, r3):
    r3.execute_command("DQ.SEND", b"evil\x1b[2J\x1b[1;1HGOTCHA\r\n", "x", "GROUP", b"g\x1b[2J")
    with Screen(dq, "top", columns=120) as screen:
        text = screen.sees("evil\\x1b[2J")
        assert not text.startswith("GOTCHA")


def test_top_needs_a_terminal(dq, program):
    assert "needs a terminal" in dq("top", code=1).stderr


def test_a_server_without_the_module_or_with_dangers_says_so(program, make_server, server):
    bare = make_server(load_module=False)
    dq = Cli(program, f"redis://127.0.0.1:{bare.port}")
    for verb in (["top"], ["ls"], ["show", "q"]):
        with Screen(dq, *verb) as screen:
            screen.sees("this server has not loaded the dq module", "ended with 1")
    server.client().execute_command("DQ.SEND", "q", "x")
    dq = Cli(program, f"redis://127.0.0.1:{server.port}")
    with Screen(dq, "top") as screen:
        screen.sees(">q", "warning: appendonly is no")
    with Screen(dq, "ls", columns=200) as screen:
        screen.sees("q ", "dq: warning: appendonly is no", "ended with 0")


def test_long_names_are_cut_on_a_terminal_only(dq, r3):
    name = "a-long-name-" * 12
    r3.execute_command("DQ.SEND", name, "x")
    assert name in dq("ls").stdout
    with Screen(dq, "ls", columns=120) as screen:
        screen.sees("…", "ended with 0")
        assert not any(line.startswith("  ") for line in screen.lines())


def test_a_change_in_bulk_asks_on_a_terminal(dq, shop):
    def asks(*args, question, answer, done):
        with Screen(dq, *args, columns=120) as screen:
            screen.sees(question + " [y/N]")
            screen.press(answer, "Enter")
            screen.sees(done)

    length = lambda state: shop.execute_command("DQ.LEN", "shop", state)  # noqa: E731
    question = "Redrive 1 dead message of shop?"
    asks("redrive", "shop", "--all", question=question, answer="n", done="dq: nothing was changed")
    assert length("dead") == 1
    asks("redrive", "shop", "--all", question=question, answer="y", done="1 message pending again")
    question = "Cancel 1 message of shop: ready, id dead?"
    asks("find", "shop", "ready", "--id", "dead", "--act", "cancel", question=question, answer="yes", done="1 message cancelled")
    asks("purge", "shop", "--state", "retry", question="Remove 1 retry message of shop?", answer="Y", done="1 message removed")
    assert length("retry") == 0
