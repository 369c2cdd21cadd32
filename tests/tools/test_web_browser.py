"""`dq web` in a headless Chromium: the view of a person, who uses the mouse and keys."""

import re
import subprocess
import time

import pytest

from tests.harness.cli import Cli
from tests.harness.server import wait_for
from tests.harness.web import Web, fill, past

pytest_plugins = ["tests.harness.browser_fixtures"]
pytestmark = pytest.mark.timeout(600)


def test_a_newcomer_finds_and_redrives_failed_messages(r3, site, clean):
    fill(r3.execute_command)
    clean.open(site.url)
    clean.sees("mails", "shop")
    clean.click("shop")
    clean.sees("Groups", "Settings")
    clean.click_on("a.state-dead")
    clean.sees("dead messages of shop", "dead-0", "dead-4", "HTTP 500")
    clean.click("Conditions")
    clean.write('input[name="type"]', "b\n")
    clean.at("type=b")
    clean.sees("dead-1", "dead-3", within="table")
    assert "dead-0" not in clean.text("table")
    clean.click("Redrive all that match")
    clean.sees("This is about 2 messages")
    assert r3.execute_command("DQ.LEN", "shop", "dead") == 5
    clean.click("Redrive")
    clean.sees("2 messages pending again", "dead messages of shop", "There are no such messages.")
    clean.at("type=b", "done=")
    assert r3.execute_command("DQ.LEN", "shop", "dead") == 3
    # The conditions stay with the other states.
    clean.open(f"{site.url}messages?queue=shop&state=dead")
    clean.sees("dead-0", within="table")
    clean.click("dead-0")
    clean.sees("died: rejected", "HTTP 500", '"n": 0')


def test_figures_come_without_a_reload(r3, site, clean):
    fill(r3.execute_command)
    clean.open(f"{site.url}queue?queue=shop")
    clean.sees("5\ndead", within=".tiles")
    clean.run("window.same = true")
    r3.execute_command("DQ.MSEND", "shop", 7, *["x"] * 7)
    clean.sees("7\nready", within=".tiles")
    r3.execute_command("DQ.SEND", "shop", "x", "GROUP", "new", "ID", "n1")
    r3.execute_command("DQ.PAUSE", "shop", "GROUP", "new")
    assert clean.run("return window.same")
    wait_for(lambda: clean.run("return document.querySelectorAll('.chart polyline').length") == 5, what="the charts")


def test_keys_do_what_the_mouse_does(r3, site, clean):
    fill(r3.execute_command)
    clean.open(site.url)
    clean.sees("mails", "shop")
    clean.press("?")
    clean.sees("select a line", within="dialog")
    clean.press("?")
    # The queue with dead messages comes first.
    clean.press("j", "j")
    assert "mails" in clean.text("tr.selected")
    clean.press("k")
    assert "shop" in clean.text("tr.selected")
    clean.press("\ue007")
    clean.at("queue?queue=shop")
    clean.sees("Settings")
    clean.press("p")
    clean.sees("Nothing is delivered while it is paused")
    assert clean.run("return document.activeElement.id") == "yes"
    clean.press("\ue007")
    clean.sees("shop is paused", "Nothing is delivered.")
    assert r3.execute_command("DQ.INFO", "shop")[b"paused"]
    clean.press("p")
    clean.at("act=resume")
    clean.press("u")
    clean.at("queue?queue=shop")
    clean.sees("Settings")
    clean.press("o")
    clean.at(site.url)
    clean.sees("2 queues")
    clean.press("/")
    # Letters in a field are only letters.
    clean.press("ujp", "\ue007")
    clean.at("q=ujp")
    clean.sees("No queue with such a name")
    assert r3.execute_command("DQ.INFO", "shop")[b"paused"]


def test_a_test_message_is_sent(r3, site, clean):
    fill(r3.execute_command)
    clean.open(f"{site.url}queue?queue=mails")
    clean.sees("Settings")
    clean.press("n")
    clean.sees("Send a test message to mails")
    clean.write("textarea", "<b>bold</b>")
    clean.write('main input[name="id"]', "t1")
    clean.click("Send")
    clean.sees("Sent, with the id t1.")
    clean.open(f"{site.url}message?queue=mails&id=t1")
    assert clean.sees("<b>bold</b>", within="#payload")


def test_marked_messages_are_removed(r3, site, clean):
    fill(r3.execute_command)
    clean.open(f"{site.url}messages?queue=shop&state=dead")
    clean.sees("dead-4", within="table")
    clean.click_on('input[name="pick"]', 1)
    clean.click_on('input[name="pick"]', 3)
    clean.click("Remove")
    clean.sees("Remove?", "2 messages of shop: dead-1, dead-3")
    clean.click("Remove")
    clean.sees("2 messages: remove", "dead-0", "dead-4")
    assert r3.execute_command("DQ.LEN", "shop", "dead") == 3
    # One box marks all messages of the page.
    clean.click_on("#all")
    clean.click("Redrive")
    clean.sees("3 messages of shop")
    clean.click("Redrive")
    clean.sees("3 messages: redrive", "There are no such messages.")


def test_the_errors_of_earlier_attempts_are_opened_on_the_page_of_a_message(r3, site, clean):
    do = r3.execute_command
    do("DQ.CREATE", "q", "BACKOFF", "FIXED", 0)
    do("DQ.SEND", "q", "x", "ID", "m")

    def fail(error):
        do("DQ.NACK", "q", do("DQ.FETCH", "q")[0][1], "ERROR", error)

    fail("zero"), fail("zero")
    clean.open(f"{site.url}message?queue=q&id=m")
    clean.sees("ERRORS of the queue is 0.")
    clean.click("Change settings")
    clean.at("settings")
    clean.write('input[name="errors"]', "5\n", instead=True)
    clean.sees("Change settings?", "errors")
    clean.press("\ue007")
    clean.at("message?", "done=")
    clean.sees("Changed: errors.")
    fail("HTTP 500\n  the whole answer")
    clean.sees("attempt 3 failed: HTTP 500", "Failed attempts")
    assert not clean.run("return document.querySelector('#attempts details').open")
    clean.click_on("#attempts summary")
    clean.sees("the whole answer", within="#attempts")
    # The answer stays open while the page is renewed.
    clean.requested()
    wait_for(lambda: len(clean.requested()) > 0, 20, "newer figures")
    wait_for(lambda: len(clean.requested()) > 0, 20, "newer figures")
    assert clean.run("return document.querySelector('#attempts details').open")


def test_the_values_of_a_picture_are_under_the_pointer_and_by_keyboard(r3, program, server, clean, tmp_path):
    fill(r3.execute_command)
    (tmp_path / "history").write_text(past(None, [[40, 0, 0, 0, 0], [7, 0, 0, 0, 2000]]) + past("shop", [[7, 0, 0, 0, 0]] * 2))
    cli = Cli(program, f"redis://127.0.0.1:{server.port}")
    with Web(cli, tmp_path / "web.log", "--history", tmp_path / "history") as site:
        clean.open(f"{site.url}?span=15m")
        clean.sees("compare queues", "sent in 1m max 40")
        # The right end, and the middle, of which nothing is known.
        for place, value in ((0.49, r": (7|-)$"), (0, ": -$")):
            clean.hover("#history .chart", place)
            wait_for(lambda value=value: re.search(r"^\d\d-\d\d \d\d:\d\d" + value, clean.text("#history output")), 20, value)
        clean.run("document.querySelector('#history figure').focus()")
        values = []
        for key in ("\ue010", "\ue012", "\ue012"):  # End, and twice to the left
            clean.press(key)
            values.append(clean.text("#history output").split()[-1])
        assert ["40", "7"] == [value for value in values if value != "-"][::-1], values
        clean.run("document.activeElement.blur()")
        assert clean.text("#history output") == ""
        # Marked queues are in one picture.
        clean.click_on('input[name="pick"][value="shop"]')
        clean.click_on('input[name="pick"][value="mails"]')
        clean.click("Compare")
        clean.at("history?pick=shop&pick=mails")
        clean.sees("shop", "mails", within=".legend")
        clean.run("document.querySelector('figure').focus()")
        clean.press("\ue011")
        clean.sees("shop -, mails -", within="output")


def test_nothing_is_asked_for_while_the_page_is_hidden(r3, site, clean):
    fill(r3.execute_command)
    clean.open(site.url)
    clean.sees("2 queues")
    clean.driver.execute_cdp_cmd("Page.enable", {})
    # The page learns that another one is in front of it.
    clean.run("Object.defineProperty(document, 'hidden', {get: () => window.away, configurable: true}); window.away = true")
    clean.requested()
    time.sleep(5)
    assert clean.requested() == set()
    clean.run("window.away = false; document.dispatchEvent(new Event('visibilitychange'))")
    wait_for(lambda: clean.requested(), 10, "a refresh")


def test_everything_works_without_javascript(r3, site, clean):
    fill(r3.execute_command)
    clean.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        clean.open(f"{site.url}messages?queue=shop&state=dead")
        clean.click_on('input[name="pick"]')
        clean.click("Redrive")
        clean.at("confirm")
        clean.click("Redrive")
        wait_for(lambda: r3.execute_command("DQ.LEN", "shop", "dead") == 4, what="the redrive")
        clean.open(f"{site.url}queue?queue=shop")
        clean.click("Pause")
        clean.at("confirm")
        clean.click("Pause")
        wait_for(lambda: r3.execute_command("DQ.INFO", "shop")[b"paused"], what="the pause")
        clean.open(f"{site.url}send?queue=mails")
        clean.write("textarea", "by hand")
        clean.click("Send")
        wait_for(lambda: r3.execute_command("DQ.LEN", "mails") == 2, what="the message")
    finally:
        clean.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_no_script_of_a_queue_runs(r3, site, clean):
    attack = "<img src=x onerror=\"document.title='broken in'\"><script>document.title='broken in'</script>"
    do = r3.execute_command
    do("DQ.SEND", attack, attack, "ID", attack, "GROUP", attack, "TYPE", attack, "HEADERS", 1, attack, attack)
    [[_, receipt, *_]] = do("DQ.FETCH", attack, "CONSUMER", attack)
    do("DQ.NACK", attack, receipt, "FATAL", "ERROR", attack, "NOTE", attack)
    clean.open(site.url)
    clean.sees(attack[:50])
    clean.press("j", "\ue007")
    clean.sees("Settings")
    for steps in ([], [lambda: clean.click_on("a.state-dead")], [lambda: clean.click_on("td.first a")]):
        for step in steps:
            step()
        clean.sees(attack[:50])
        assert "broken in" != clean.driver.title and not clean.all("main img") and not clean.all("main script")
    clean.sees("died: rejected")


def test_signing_in_and_out(program, server, r3, clean, tmp_path):
    cli = Cli(program, f"redis://127.0.0.1:{server.port}")
    command = [program, "web", "--hash-password", "ann"]
    line = subprocess.run(command, input="correct horse\n", capture_output=True, text=True, check=True).stdout
    (tmp_path / "passwords").write_text(line)
    with Web(cli, tmp_path / "web.log", "--password-file", tmp_path / "passwords") as site:
        clean.open(site.url)
        clean.sees("Password")
        clean.press("ann", "\ue004", "wrong horse", "\ue007")
        clean.sees("Wrong name or password")
        # The name stays, and the password is typed next.
        clean.press("correct horse", "\ue007")
        clean.sees("sign out")
        assert clean.run("return document.cookie") == ""
        clean.click_on("header form button")
        clean.sees("Password")
        # The browser says that the answer to a wrong password was 403.
        assert all("403" in line for line in clean.complaints())
