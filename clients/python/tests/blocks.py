"""The examples of the pages."""

import re

from tests.harness.server import ROOT


def effects_of(page):
    """The example with effects on the page of a framework, which defines `pay(user, cents)`."""
    text = (ROOT / f"docs/drivers/{page}.md").read_text()
    [block] = [one for one in re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL) if "effects()." in one]
    return block
