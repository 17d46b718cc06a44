"""Take the pictures of the page: python docs/make_page_pictures.py [folder [what...]].

Needs Chromium. The performers are generated, so the pictures can be made again
anywhere. Those of tutorials show what the tutorial makes, up to where it shows them.
What is "archive", "live" or "page"; all of them by default.
"""

import contextlib
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
from playwright.sync_api import sync_playwright
from run_pages import blocks, run_python

import marey
from marey import synth

HERE = Path(__file__).parent
SOFTWARE = ("--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader")
PATIENCE_MS = 300_000
PICTURES = {  # name: theme, frame, what is selected, keys pressed
    "page-dark": ("dark", 200, "RightLowerLeg", ""),
    "page-light": ("light", 262, "RightLowerArm", "r"),
}


def performance(path):
    """Write the page of a performer who walks, beside the truth."""
    figure = synth.human(1.8, seed=3)
    walk = figure.record(
        "walk", seconds=6.0, rate=120.0, noise=1e-3, gaps=0.05, markers="set53", seed=4
    )
    marey.write(walk, path.with_suffix(".c3d"))
    options = marey.SolveOptions(contacts=True)
    solution = marey.solve(path.with_suffix(".c3d"), options=options)
    marey.write(solution, path, truth=walk.truth.motions)


def follow_tutorial(name, last):
    """Run the Python of a tutorial in this folder, up to the block with some words."""
    names = {}
    for kind, code in blocks((HERE / "tutorials" / name).read_text("utf-8")):
        if kind == "python":
            run_python(code, names)
        if last in code:
            return


@contextlib.contextmanager
def open_tab(browser, url, theme="light", height=720):
    """Yield a page of the browser that shows an address."""
    context = browser.new_context(
        viewport={"width": 1280, "height": height},
        color_scheme=theme,
        device_scale_factor=2,
    )
    tab = context.new_page()
    tab.goto(url)
    yield tab
    context.close()


def show_frame(tab, frame, selected, keys):
    """Show one frame of a solution with one bone selected."""
    tab.wait_for_function("!!window.marey")
    for key in keys:
        tab.keyboard.press(key)
    tab.evaluate(f"marey.frame = {frame}")
    tab.evaluate("name => marey.select(name)", selected)
    tab.wait_for_timeout(800)
    tab.evaluate("marey.draw()")


def take_page_pictures(browser, folder):
    page = Path("performer.html").resolve()
    performance(page)
    for name, (theme, *how) in PICTURES.items():
        with open_tab(browser, page.as_uri(), theme) as tab:
            show_frame(tab, *how)
            tab.screenshot(path=folder / f"{name}.png")


def take_archive_picture(browser, folder):
    follow_tutorial("archive.md", last="marey.batch(")
    with open_tab(browser, Path("solved/index.html").resolve().as_uri()) as tab:
        tab.wait_for_timeout(500)
        tab.screenshot(path=folder / "tutorial-archive.png")


LIVE_PICTURES = {  # name: seconds of the exercise, and joints that are ready by then
    "tutorial-live-learning": (6.0, 5),
    "tutorial-live-ready": (12.0, 14),
}


REST_SECONDS = 6.0
"""Seconds in which the performer stands still, for the picture."""


def take_live_pictures(browser, folder):
    """Take pictures of a figure that is learnt from a part and from a whole exercise.

    The exercise is played forward and backward, so that its end is no jump, and then
    the performer stands still.
    """
    follow_tutorial("live.md", last="exercise.c3d")
    take = marey.read("exercise.c3d")
    ready = "(n) => document.querySelectorAll('.need.ready').length >= n"
    for name, (seconds, n_ready) in LIVE_PICTURES.items():
        points = take.points[: int(seconds * take.rate)]
        rest = np.repeat(points[:1], int(REST_SECONDS * take.rate), axis=0)
        points = np.concatenate([points, points[-2:0:-1], rest])
        part = marey.Take(rate=take.rate, points=points, labels=take.labels)
        marey.write(part, "exercise.c3d", overwrite=True)
        poses = marey.stream("file:exercise.c3d?loop")
        with (
            marey.view(poses, browser=False, block=False) as viewer,
            open_tab(browser, viewer.url) as tab,
        ):
            tab.wait_for_function(ready, arg=n_ready, timeout=PATIENCE_MS)
            tab.wait_for_timeout(1500)  # joints move to their new places
            while not 0 <= _seconds_of_rest(poses, points, take.rate) < 1.0:
                tab.wait_for_timeout(10)
            tab.keyboard.press("f")
            tab.wait_for_timeout(1000)
            tab.screenshot(path=folder / f"{name}.png")


def _seconds_of_rest(poses, points, rate):
    """Return for how long the performer of a loop has stood still; negative before."""
    row = poses.statistics.received % len(points)
    return (row - len(points)) / rate + REST_SECONDS


TAKERS = {
    "archive": take_archive_picture,
    "live": take_live_pictures,
    "page": take_page_pictures,
}


def main():
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else HERE / "images").resolve()
    folder.mkdir(parents=True, exist_ok=True)
    names = ("chromium-headless-shell", "chromium", "google-chrome")
    chromium = next(filter(None, map(shutil.which, names)), None)
    with (
        tempfile.TemporaryDirectory() as name,
        contextlib.chdir(name),
        sync_playwright() as playwright,
    ):
        flags = ["--no-sandbox", *SOFTWARE]
        browser = playwright.chromium.launch(executable_path=chromium, args=flags)
        for name in sys.argv[2:] or TAKERS:
            TAKERS[name](browser, folder)
        browser.close()


if __name__ == "__main__":
    main()
