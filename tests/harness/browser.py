"""A headless Chromium, driven by Selenium; without them the tests that want one are skipped."""

import json
import shutil
import tempfile

from tests.harness.optional import need
from tests.harness.server import wait_for

FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    " --disable-component-update --disable-sync --disable-dev-shm-usage --hide-scrollbars --lang=en"
).split()


def selenium():
    """The library, or None."""
    try:
        from selenium import webdriver
    except ImportError:
        return None
    return webdriver


class Browser:
    """Chromium with a profile of its own, for `with`."""

    def __init__(self, width: int = 1200, height: int = 900):
        self.size = (width, height)

    def __enter__(self):
        webdriver = selenium()
        need(webdriver, "selenium")
        need(shutil.which("chromium") and shutil.which("chromedriver"), "chromium with chromedriver")
        self.profile = tempfile.mkdtemp(prefix="dq-browser-")
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium")
        for flag in [*FLAGS, f"--user-data-dir={self.profile}", "--window-size={},{}".format(*self.size)]:
            options.add_argument(flag)
        # The log has the lines that the page writes to the console, and the refusals of its policy.
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        service = webdriver.ChromeService(shutil.which("chromedriver"))
        self.driver = webdriver.Chrome(options=options, service=service)
        self.driver.set_page_load_timeout(60)
        return self

    def __exit__(self, *_):
        self.driver.quit()
        shutil.rmtree(self.profile, ignore_errors=True)

    def open(self, address: str) -> None:
        self.driver.get(address)

    def all(self, selector: str) -> list:
        return self.driver.find_elements("css selector", selector)

    def text(self, selector: str = "body") -> str:
        """The text that a person reads there; empty where there is no such element, or it was just replaced."""
        return self.run(f"return document.querySelector({selector!r})?.innerText || ''")

    def sees(self, *words: str, within: str = "body", timeout: float = 30) -> str:
        """Waits until all these words are there at once."""

        def whole():
            text = self.text(within)
            return text if all(word in text for word in words) else None

        try:
            return wait_for(whole, timeout, f"{words} in the browser")
        except AssertionError as failed:
            raise AssertionError(f"{failed}:\n{self.driver.current_url}\n{self.text()[:3000]}") from None

    def press(self, *keys: str) -> None:
        """Presses keys, wherever the focus is."""
        selenium().ActionChains(self.driver).send_keys(*keys).perform()

    def hover(self, selector: str, place: float) -> None:
        """Moves the pointer over an element: -0.5 is its left end, 0.5 its right end."""
        [element, *_] = self.all(selector)
        actions = selenium().ActionChains(self.driver)
        actions.move_to_element_with_offset(element, int(element.size["width"] * place), 0).perform()

    def click(self, words: str) -> None:
        """Clicks the link or button of these words."""
        self._do("xpath", f"//main//*[self::a or self::button or self::summary][normalize-space()='{words}']", 0, lambda it: it.click())

    def click_on(self, selector: str, which: int = 0) -> None:
        """Clicks the element that this selector finds."""
        self._do("css selector", selector, which, lambda it: it.click())

    def write(self, selector: str, text: str, instead: bool = False) -> None:
        """Types into a field, after what it has or `instead` of it."""

        def type_in(field):
            if instead:
                field.clear()
            field.send_keys(text)

        self._do("css selector", selector, 0, type_in)

    def _do(self, how: str, what: str, which: int, act) -> None:
        """Acts on an element once it is there. One that the page has just replaced was not acted on: its successor is."""
        from selenium.common.exceptions import StaleElementReferenceException

        def done():
            found = self.driver.find_elements(how, what)
            if which >= len(found):
                return False
            try:
                act(found[which])
            except StaleElementReferenceException:
                return False
            return True

        try:
            wait_for(done, 30, f"{what} in the browser")
        except AssertionError as failed:
            raise AssertionError(f"{failed}:\n{self.driver.current_url}\n{self.text('main')[:2000]}") from None

    def at(self, *parts: str) -> None:
        """Waits until the address has these parts."""
        wait_for(lambda: all(part in self.driver.current_url for part in parts), 30, f"{parts} as the address")

    def run(self, script: str, *args):
        return self.driver.execute_script(script, *args)

    def emulate(self, scheme: str = "light", width: int = 0, height: int = 0) -> None:
        """A dark or light system, and the screen of a phone."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        if width:
            screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": True}
            self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)

    def complaints(self) -> list:
        """The lines of the console, such as refusals of the policy, since the last call."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]

    def requested(self) -> set:
        """The addresses that pages have asked for since the last call."""
        found = set()
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                found.add(message["params"]["request"]["url"])
        return found
