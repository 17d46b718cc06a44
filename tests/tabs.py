"""A page in a browser, asked and waited for."""

import time
from dataclasses import dataclass, field


@dataclass
class Tab:
    """A page in the browser, and what it asked for and complained of."""

    page: object
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def ask(self, script):
        return self.page.evaluate(script)

    def until(self, script, seconds=60.0):
        """Wait until a script is true; the page allows nobody to wait inside it."""
        end = time.monotonic() + seconds
        while not self.ask(script):
            assert time.monotonic() < end, f"never so: {script}"
            self.page.wait_for_timeout(20)

    def settle(self):
        """Wait until what was asked for has been drawn."""
        self.ask("new Promise(r => requestAnimationFrame(() => setTimeout(r)))")

    @property
    def snapshot(self):
        return self.ask("marey.snapshot()")

    def seek(self, frame):
        self.ask(f"marey.frame = {frame}")
        self.settle()

    def select(self, name):
        found = self.page.evaluate("name => marey.select(name)", name)
        self.settle()
        return found

    def text(self, selector):
        return self.page.locator(selector).first.inner_text()

    def fact(self, name):
        """The value beside a name in the panel of the selection."""
        there = self.page.get_by_text(name, exact=True)
        fact = self.page.locator(".right .fact", has=there)
        return fact.first.locator("b").inner_text()
