"""A headless Chromium, and takes to show in it.

The tests use the installed browser (`apt-get install chromium`). Without a browser they
are skipped with a message; with MAREY_REQUIRE_BROWSER=1 they fail.
"""

import shutil
from pathlib import Path

import pytest
from required import REQUIRED
from tabs import Tab

import marey
from marey import synth

NAMES = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
)
SOFTWARE = (  # WebGL without a graphics card, and no calls home
    *("--no-sandbox", "--no-first-run", "--disable-dev-shm-usage", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
    *("--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"),
)
NO_WEBGL = """(() => {
  const open = HTMLCanvasElement.prototype.getContext;
  HTMLCanvasElement.prototype.getContext = function (kind, ...rest) {
    return kind.includes("webgl") ? null : open.call(this, kind, ...rest);
  };
})()"""
AXE = (*("viewer", "page", "node_modules", "axe-core", "axe.min.js"),)
FOUND = next(filter(None, map(shutil.which, NAMES)), None)


def pytest_terminal_summary(terminalreporter):
    if not FOUND:
        terminalreporter.section("tests/browser was skipped", yellow=True, bold=True)
        terminalreporter.line("Install chromium to run it.")


@pytest.fixture(scope="session")
def browser():
    if not FOUND and not REQUIRED:
        pytest.skip("no Chromium on this machine: install chromium")
    assert FOUND, "MAREY_REQUIRE_BROWSER=1, and no Chromium was found"
    api = pytest.importorskip("playwright.sync_api")
    with api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=FOUND, headless=True, args=list(SOFTWARE)
        )
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def open_tab(browser):
    """Open an address; the theme is what the machine prefers.

    Pages are closed with their module: a page that plays would slow down other tests.
    A page that does not draw, as in a browser without WebGL, takes half the time. The
    given script runs before those of the page.
    """
    contexts = []

    def opened(
        address,
        *,
        theme="dark",
        width=1280,
        height=720,
        touch=False,
        draws=True,
        script="",
    ):
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme=theme,
            has_touch=touch,
        )
        contexts.append(context)
        tab = Tab(context.new_page())
        tab.page.on("request", lambda request: tab.requests.append(request.url))
        tab.page.on("pageerror", lambda error: tab.error_messages.append(str(error)))
        tab.page.on(
            "console",
            lambda message: (
                tab.error_messages.append(message.text)
                if message.type in ("error", "warning")
                else None
            ),
        )
        tab.page.add_init_script(script if draws else f"{NO_WEBGL};{script}")
        tab.page.goto(address)
        tab.until("!!window.marey")
        tab.wait_for_frame()
        return tab

    yield opened
    for context in contexts:
        context.close()


@pytest.fixture(scope="session")
def axe():
    """The script of axe-core, which knows the rules of accessible pages."""
    path = Path(marey.__file__).parent.joinpath(*AXE)
    if not path.is_file() and not REQUIRED:
        pytest.skip("axe-core is not there: an editable installation fetches it")
    return path.read_text("utf-8")


@pytest.fixture(scope="session")
def walk():
    """A generated performer who walks for two seconds, and its truth."""
    return synth.human(1.8, seed=3).record(
        "walk", seconds=2.0, rate=60.0, noise=1e-3, gaps=0.05, markers="set53", seed=4
    )


@pytest.fixture(scope="session")
def walked(walk):
    return marey.solve(walk)
