"""A page in a real browser: scripts, waiting, selection and edits."""

import time
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Tab:
    """A page in the browser, with its requests and its error messages."""

    page: Any
    requests: list[str] = field(default_factory=list)
    error_messages: list[str] = field(default_factory=list)

    def ask(self, script):
        return self.page.evaluate(script)

    def until(self, script, seconds=60.0):
        """Wait until a script is true, by polling: the page's policy forbids `eval`."""
        end = time.monotonic() + seconds
        while not self.ask(script):
            assert time.monotonic() < end, f"never true: {script}"
            self.page.wait_for_timeout(20)

    def until_texts(self, selector, wanted, seconds=60.0):
        """Wait until the elements of a selector have these texts, in order."""
        end = time.monotonic() + seconds
        while (found := self.page.locator(selector).all_text_contents()) != wanted:
            assert time.monotonic() < end, f"{selector}: {found}, never {wanted}"
            self.page.wait_for_timeout(20)

    def wait_for_frame(self):
        """Wait until the next frame is drawn."""
        self.ask("new Promise(r => requestAnimationFrame(() => setTimeout(r)))")

    @property
    def snapshot(self):
        return self.ask("marey.snapshot()")

    def seek(self, frame):
        self.ask(f"marey.frame = {frame}")
        self.wait_for_frame()

    def select(self, name):
        found = self.page.evaluate("name => marey.select(name)", name)
        self.wait_for_frame()
        return found

    def text(self, selector):
        return self.page.locator(selector).first.inner_text()

    def fact(self, name):
        """Return the value of a name in the panel of the selection."""
        there = self.page.get_by_text(name, exact=True)
        fact = self.page.locator(".right .fact", has=there)
        return fact.first.locator("b").inner_text()


def violations(page, axe):
    """Return impact, rule and element of each rule of axe-core that a page breaks."""
    page.evaluate(axe)
    found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
    return [(v["impact"], v["id"], v["nodes"][0]["html"]) for v in found["violations"]]


def open_edit_actions(tab, name):
    """Select an element and open its list of edits."""
    assert tab.select(name)
    tab.ask("document.querySelector('details.actions').open = true")
    return tab.page.locator("details.actions")


def choose(tab, name, row, value, label):
    actions = open_edit_actions(tab, name)
    line = actions.locator(".action", has=tab.page.get_by_text(row, exact=True))
    line.locator("select").select_option(label=value)
    line.get_by_role("button", name=label).click()


def press(tab, name, label):
    open_edit_actions(tab, name).get_by_role("button", name=label).click()


def rename(tab, name, to):
    field = open_edit_actions(tab, name).get_by_label("Rename")
    field.fill(to)
    field.press("Enter")


def drag(tab, name):
    press(tab, name, "Drag in the scene")
    tab.wait_for_frame()
    spot = tab.page.evaluate("name => marey.where(name)", name)
    mouse = tab.page.mouse
    mouse.move(spot["x"], spot["y"])
    mouse.down()
    for step in range(1, 9):
        mouse.move(spot["x"] + 2 * step, spot["y"] - step)
    mouse.up()


def outcome(tab):
    """Wait for the answer to an edit; return the reason if it is refused."""
    tab.until("document.querySelector('.trial, .refused:not([hidden])')", 300)
    refused = tab.page.locator(".refused")
    return refused.inner_text() if refused.is_visible() else ""


def decide(tab, what):
    """Keep or drop the edit on trial, and wait until the trial has ended."""
    tab.page.get_by_role("button", name=what, exact=True).click()
    tab.until("!document.querySelector('.trial')")
