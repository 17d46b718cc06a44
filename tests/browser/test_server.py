"""The server and its page in a real browser, with a hostile page in another tab."""

import http.server
import threading

import numpy as np
import pytest
import samples
from tabs import Tab

import marey
from marey.io.formats import html
from marey.viewer import Limits

EVIL = """<!doctype html><title>evil</title><script>
const at = new URL(location).searchParams.get("at");
const tried = (name, promise) =>
  promise.then((x) => [name, x], (e) => [name, "failed"]);
const socket = () => new Promise((open, close) => {
  const s = new WebSocket(at.replace("http", "ws") + "/ws");
  s.onopen = () => open("open");
  s.onerror = () => close();
});
const form = () => new Promise((done) => {
  const frame = document.createElement("iframe");
  frame.name = "hidden";
  frame.onload = () => done("sent");
  document.body.append(frame);
  const f = document.createElement("form");
  Object.assign(f, { method: "post", action: at + "/api/undo", target: "hidden" });
  document.body.append(f);
  f.submit();
});
const sent = { method: "POST", body: "{}", credentials: "include", mode: "no-cors" };
onload = async () => {
  window.results = Object.fromEntries(await Promise.all([
    tried("read", fetch(at + "/api/scene", { credentials: "include" })
      .then((r) => r.text())),
    tried("json", fetch(at + "/api/open", { ...sent, mode: "cors",
      headers: { "content-type": "application/json" } }).then((r) => r.text())),
    tried("simple", fetch(at + "/api/undo", sent).then((r) => r.type)),
    tried("socket", socket()),
    tried("form", form()),
  ]));
};
</script>"""


STATE = "fetch('/api/state')"


@pytest.fixture(scope="module")
def viewer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("folder")
    marey.write(samples.motion(60), folder / "walk.bvh")
    with marey.view(folder / "walk.bvh", browser=False, block=False) as viewer:
        yield viewer


@pytest.fixture(scope="module")
def evil():
    """A page of another site, which is the same machine on another port."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(EVIL.encode())

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_the_page_runs_under_its_policy_and_asks_only_its_server(open_tab, viewer):
    tab = open_tab(viewer.url)
    tab.until("document.querySelectorAll('.row.joint').length > 0", 300)
    origin = viewer.url.partition("/?")[0]
    assert tab.page.url == f"{origin}/"
    assert tab.ask("document.cookie") == ""
    assert tab.error_messages == []
    assert {request.startswith(origin) for request in tab.requests} == {True}
    assert "LowerLeg" in tab.text("body")


def test_a_page_that_missed_the_news_catches_up(open_tab, viewer):
    """A scene fetched before the take was read, and a line opened after it."""
    tab = open_tab(viewer.url)
    tab.until("document.querySelectorAll('.row.joint').length > 0", 300)
    old = html.encode_scene(
        None, html.SceneOptions(title="walk.bvh", unsolved="not yet")
    )

    def answer(route):
        route.fulfill(body=old, headers={"Scene-Version": "0"})

    tab.page.route("**/api/scene", answer, times=1)
    tab.page.reload()
    tab.until("document.querySelectorAll('.row.joint').length > 0")
    assert tab.error_messages == []


def test_what_is_selected_is_exact_where_few_frames_are_drawn(open_tab, walked):
    """The curves and the rms of all frames, not of every sixth."""
    limits = Limits(drawn=2000)
    with marey.view(walked, browser=False, block=False, limits=limits) as viewer:
        tab = open_tab(viewer.url)
        tab.until("document.querySelectorAll('.row.joint').length > 0", 300)
        take = walked.take
        assert tab.snapshot["frames"] < take.n_frames / 3
        label = "RKNE"
        away = html.marker_residuals(take, [walked.motion])[:, take.labels.index(label)]
        every, drawn = (
            f"{1000 * np.sqrt(np.nanmean(some**2)):.2f}" for some in (away, away[::6])
        )
        assert every != drawn
        tab.select(label)
        for _ in range(500):
            if tab.fact("Residual rms") == every:
                break
            tab.page.wait_for_timeout(20)
        assert tab.fact("Residual rms") == every
        assert tab.error_messages == []


def test_what_was_not_built_in_does_not_run(open_tab, viewer):
    """S14: neither scripts nor styles nor requests of anyone who got text in."""
    tab = open_tab(viewer.url)
    tab.ask(
        """() => {
          const put = (tag, text) => {
            const e = document.createElement(tag);
            e.textContent = text;
            document.body.append(e);
          };
          put("script", "window.ran = true");
          put("style", "body { outline: 7px solid red }");
          document.body.insertAdjacentHTML("beforeend", "<p onclick='ran = 1'>x</p>");
          document.body.lastChild.click();
        }"""
    )
    assert tab.ask("window.ran === undefined")
    assert tab.ask("getComputedStyle(document.body).outlineWidth") != "7px"
    away = "fetch('http://127.0.0.1:9/').then(() => 'out', () => 'kept in')"
    assert tab.ask(away) == "kept in"
    assert any("Content Security Policy" in text for text in tab.error_messages)


def test_a_hostile_page_next_door_gets_nothing(browser, viewer, evil):
    """S3, S4: the same browser, with the cookie in it; ports are all that differ."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(viewer.url)
    origin = viewer.url.partition("/?")[0]
    Tab(page).until(f"{STATE}.then((r) => r.json()).then((s) => !s.busy)", 300)
    before = page.evaluate(f"{STATE}.then((r) => r.text())")
    other = context.new_page()
    other.goto(f"{evil}/?at={origin}")
    Tab(other).until("!!window.results")
    results = other.evaluate("window.results")
    assert {results[name] for name in ("read", "json", "socket")} == {"failed"}
    assert results["simple"] in ("failed", "opaque")
    assert page.evaluate(f"{STATE}.then((r) => r.text())") == before
    context.close()
