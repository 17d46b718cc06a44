"""An edit on trial, and other events of the recording in the meantime."""

import json

import pytest
from tabs import Tab, decide, outcome, rename

import marey
from marey import synth

OLD, NEW = "RightUpperArm", "Spam"
NAMES = ".left .row.joint .text"
POST = """what => fetch(`/api/${what}`, {
  method: "POST", body: "{}", headers: { "Content-Type": "application/json" },
}).then((answer) => answer.ok)"""


@pytest.fixture(scope="module")
def take():
    return synth.linkage().record(markers=4, seconds=2.0, rate=50.0, noise=1e-4)


@pytest.fixture
def viewer(take, tmp_path):
    marey.write(take, tmp_path / "one.trc")
    marey.write(take.cut(0, 60), tmp_path / "two.trc")
    with marey.view(tmp_path / "one.trc", browser=False, block=False) as viewer:
        yield viewer


@pytest.fixture
def tab(open_tab, viewer):
    tab = open_tab(viewer.url, draws=False)
    tab.until(f"document.querySelectorAll('{NAMES}').length > 0", 300)
    return tab


def names(tab):
    return tab.page.locator(NAMES).all_text_contents()


def renamed(some):
    return [NEW + name.removeprefix(OLD) if OLD in name else name for name in some]


def open_file(tab, name):
    if tab.page.locator(".files.shut").count():
        tab.page.get_by_role("button", name="Files").click()
    tab.page.locator(".file-row", has_text=name).click()


def test_a_recording_opened_while_an_edit_is_tried_is_shown(tab):
    rename(tab, OLD, NEW)
    assert outcome(tab) == ""
    open_file(tab, "two.trc")
    tab.until("marey.snapshot().title === 'two.trc' && marey.snapshot().frames === 60")
    tab.until("!document.querySelector('.trial')")
    tab.until(f"document.querySelectorAll('{NAMES}').length > 0", 300)
    rename(tab, OLD, NEW)  # and it can be edited in turn
    assert outcome(tab) == ""
    before = names(tab)
    assert NEW in before
    decide(tab, "Drop")
    assert tab.error_messages == []


@pytest.mark.parametrize("what", ["keep", "drop"])
def test_a_trial_that_another_page_ends_is_over_on_this_one(tab, viewer, what):
    before = names(tab)
    rename(tab, OLD, NEW)
    assert outcome(tab) == ""
    tab.until_texts(NAMES, renamed(before))
    other = Tab(tab.page.context.new_page())
    other.page.goto(viewer.url)
    other.until("!!window.marey")
    assert other.page.evaluate(POST, what)
    tab.until("!document.querySelector('.trial')")
    wanted = renamed(before) if what == "keep" else before
    for page in (tab, other):
        page.until_texts(NAMES, wanted)
    kept = int(what == "keep")
    tab.until(f"document.querySelectorAll('.edit').length === {kept}")
    assert tab.page.locator(".refused").is_hidden()
    rename(tab, names(tab)[-1], "Last")
    assert outcome(tab) == ""


class Line:
    """The line from the server to a page, on which news can be held back."""

    def __init__(self, page):
        self.held, self.holding = [], False
        page.route_web_socket("**/ws", self.taken_up)

    def taken_up(self, socket):
        self.socket = socket
        socket.connect_to_server().on_message(self.said)

    def said(self, message):
        if self.holding:
            self.held.append(message)
        else:
            self.socket.send(message)

    def let_go(self):
        self.holding = False
        for message in self.held:
            self.socket.send(message)


def test_news_of_before_a_trial_that_comes_late_does_not_end_it(tab):
    """What the server says reaches a page in order, but perhaps after its answers."""
    line = Line(tab.page)
    tab.page.reload()
    tab.until("!!window.marey")
    tab.until(f"document.querySelectorAll('{NAMES}').length > 0")
    before = names(tab)
    line.holding = True
    for last in (False, True):
        rename(tab, OLD, NEW)
        assert outcome(tab) == ""
        if not last:
            decide(tab, "Drop")
            tab.until_texts(NAMES, before)
    assert [m for m in line.held if not json.loads(m).get("trial", True)]
    asked = []
    tab.page.on("requestfinished", lambda request: asked.append(request.url))
    line.let_go()
    for _ in range(500):
        if any(url.endswith("/api/state") for url in asked):
            break
        tab.page.wait_for_timeout(20)
    assert any(url.endswith("/api/state") for url in asked)
    tab.wait_for_frame()
    assert names(tab) == renamed(before)
    decide(tab, "Keep")
    tab.until_texts(NAMES, renamed(before))
