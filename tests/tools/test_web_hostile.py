"""Hostile names, payloads and addresses in `dq web`."""

import re
import urllib.parse

import pytest

pytest_plugins = ["tests.harness.web_fixtures"]
pytestmark = pytest.mark.timeout(600)


EVIL = [
    b"<script>alert(1)</script>",
    b"\"><img src=x onerror=alert(1)>",
    b"' onmouseover='alert(1)",
    b"javascript:alert(1)",
    b"</pre></title><svg onload=alert(1)>",
    b"&lt;script&gt;&#60;b&#62;",
    b"\x1b[2J\x00\xff\xfe\xe2\x80\xae<b>",
    "订单 \u202e\u2028<i>".encode(),
    b"?queue=x&act=purge#%3Cb%3E",
    b"../../etc/passwd%00",
]
OURS = {"html", "head", "meta", "title", "link", "script", "body", "header", "a", "nav", "span", "button", "div", "main", "h1", "h2"}
OURS |= {"section", "p", "b", "ol", "li", "time", "pre", "dl", "dt", "dd", "table", "thead", "tbody", "tr", "th", "td", "form"}
OURS |= {"input", "label", "select", "option", "details", "summary", "figure", "figcaption", "svg", "polyline", "polygon", "code"}
OURS |= {"textarea", "h3", "path", "aside", "line", "output"}


def check_markup(page):
    """No content of a queue has become an element, an attribute or an address."""
    for tag, attributes in page.elements():
        assert tag in OURS, tag
        assert not [name for name in attributes if name.startswith("on") or name == "srcdoc"], (tag, attributes)
        if tag == "script":
            assert attributes == {"src": "dq.js", "defer": None}
        for name in ("href", "action", "src", "formaction"):
            if name in attributes:
                address = attributes[name]
                assert re.match(r"^(\./|[a-z]+(\.[a-z]+)?)(\?|$)", address), address
    # Only the fields of forms have the visitor's words unchanged.
    shown = re.sub(rb'<input [^>]*>|<textarea.*?</textarea>', b"", page.body, flags=re.DOTALL)
    assert not re.search(rb"[\x00-\x08\x0b-\x1f\x7f]|\xe2\x80\xae|\xe2\x80\xa8", shown)


@pytest.mark.parametrize("evil", EVIL, ids=lambda evil: repr(evil)[2:20])
def test_hostile_names_and_payloads_are_only_text(start, r3, evil):
    do = r3.execute_command
    options = ["GROUP", evil, "TYPE", evil, "HEADERS", 1, evil, evil]
    do("DQ.SEND", evil, evil, "ID", evil, *options)
    do("DQ.SEND", evil, b'{"' + evil.replace(b'"', b"").replace(b"\x1b", b"").replace(b"\x00", b"") + b'": 1}', "ID", "json", "BATCH", evil)
    do("DQ.SEND", evil, "x", "ID", "held", "AFTER", evil)
    for id, receipt, *_ in do("DQ.FETCH", evil, "COUNT", 2, "CONSUMER", evil):
        if id == evil:
            do("DQ.NACK", evil, receipt, "FATAL", "ERROR", evil, "NOTE", evil)
    do("DQ.SCHEDULE", evil, evil, "EVERY", 3600000, "PAYLOAD", "x")
    do("DQ.SEND", evil + b":{a}", "x")
    do("DQ.SEND", evil + b":{b}", "x")
    web = start().visitor()
    web.sees("", "2 queues")
    quoted = urllib.parse.quote(evil)
    pages = ["", f"?q={quoted}", f"queue?queue={quoted}&groups=all", f"family?family={quoted}", f"nope?{quoted}"]
    pages += [f"messages?queue={quoted}&state={state}" for state in ("dead", "running", "held", quoted)]
    pages += [f"messages?queue={quoted}&state=dead&type={quoted}&error={quoted}&since={quoted}"]
    pages += [f"message?queue={quoted}&id={id}&as={view}" for id in (quoted, "json", "held") for view in ("", "text", "hex")]
    pages += [f"confirm?act={act}&queue={quoted}&state=dead&id={quoted}&group={quoted}" for act in ("purge", "pause", "cancel-one", quoted)]
    pages += [f"confirm?act=fire&queue={quoted}&schedule={quoted}", f"send?queue={quoted}", f"job?id={quoted}"]
    pages += ["errors", f"errors?queue={quoted}", f"types?queue={quoted}", f"search?find={quoted}", "server", f"?done={quoted}"]
    pages += ["workers", f"workers?q={quoted}", "schedules", f"messages?queues=*&group={quoted}&state=any"]
    for form in ("send", "reschedule", "edit", "schedule", "settings", "limit", "tree"):
        pages += [f"{form}?queue={quoted}&id={quoted}&back={quoted}", f"{form}?queue={quoted}&id=json"]
    for page in pages:
        got = web.ask(page)
        assert got.status in (200, 400, 404), (page, got.status, got.words())
        check_markup(got)
    # The links of the pages lead to the queue and the message, even if their names are odd.
    page = web.get(f"messages?queue={quoted}&state=dead")
    [link] = [address for address in page.links().values() if address.startswith("message?")]
    got = web.get(link)
    assert "died: rejected" in got.words()
    check_markup(got)
    check_markup(web.send(web.get(f"confirm?act=redrive-one&queue={quoted}&id={quoted}")))
    assert do("DQ.LEN", evil, "dead") == 0


def test_a_hostile_address_is_an_answer(web):
    for page in ["%00", "%ff%fe?%ff=%ff", "queue?queue=%", "a/b/../c", "x" * 5000, "queue?" + "a=b&" * 5000, "./?page=-1&sort=%ff"]:
        assert web.ask(page).status in (200, 400, 404, 414), page
    assert web.ask("do", {"payload": "x" * (3 << 20)}).status in (403, 413)
