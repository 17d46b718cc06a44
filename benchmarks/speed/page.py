"""Frame rate of the page without a graphics card, and the time to decode a long take.

A performer with 53 markers walks at 720p. Chromium renders in software, with each of
its two software renderers. The time to decode 5,000 frames is measured by the page.
"""

import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import marey
from benchmarks.harness.task import Figure, Row, Setting
from marey import synth
from marey.take import Take

RENDERER_FLAGS = {
    "swiftshader": ("--use-angle=swiftshader", "--enable-unsafe-swiftshader"),
    "gl-egl": ("--use-angle=gl-egl", "--ignore-gpu-blocklist"),
}
BROWSER_FLAGS = (
    "--no-sandbox",
    "--no-first-run",
    "--disable-dev-shm-usage",
    "--use-gl=angle",
)
HEADLINE = "frames/s"
LIMIT_MIB = 0  # Chromium reserves more addresses than there is memory
FILES = ("walk.html", "long.html")


def measure(setting: Setting) -> Iterator[Row]:
    names = ("chromium-headless-shell", "chromium", "google-chrome")
    chromium = next(filter(None, map(shutil.which, names)), None)
    if not chromium:
        yield Row("the page", skipped="no Chromium on this machine")
        return
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        write_pages(folder)
        for renderer, flags in RENDERER_FLAGS.items():
            browser = playwright.chromium.launch(
                executable_path=chromium, args=[*BROWSER_FLAGS, *flags]
            )
            walk, long = (open_page(browser, folder / n) for n in FILES)
            figures: dict[str, Figure] = {
                "frames/s": measure_frame_rate(walk, setting.choose(5.0, 2.0)),
                "decoding [ms]": long.evaluate("marey.snapshot().decodeMilliseconds"),
            }
            browser.close()
            yield Row(renderer, figures)
        for path in sorted(folder.glob("*.html")):
            yield Row(path.name, {"size [MB]": path.stat().st_size / 1e6})


def write_pages(folder: Path) -> None:
    """Write a solved walk, and a long take."""
    figure = synth.human(1.8, seed=3)
    walk = figure.record("walk", seconds=4.0, rate=120.0, markers="set53", noise=1e-3)
    marey.write(marey.solve(walk), folder / "walk.html")
    rng = np.random.default_rng(0)
    points = np.cumsum(rng.normal(scale=1e-3, size=(5000, 53, 3)), axis=0)
    labels = tuple(f"m{i}" for i in range(53))
    marey.write(Take(rate=120.0, points=points, labels=labels), folder / "long.html")


def open_page(browser: Any, path: Path) -> Any:
    """Return the page of a file, once it is there."""
    page = browser.new_page(viewport={"width": 1280, "height": 720})
    page.goto(path.as_uri())
    while not page.evaluate("!!window.marey"):
        page.wait_for_timeout(50)
    return page


def measure_frame_rate(page: Any, seconds: float) -> float:
    """Return the pictures that are drawn per second of playing."""
    page.keyboard.press("Space")
    page.wait_for_timeout(500)
    n_before, start = page.evaluate("marey.snapshot().pictures"), time.perf_counter()
    page.wait_for_timeout(1000 * seconds)
    n_drawn = page.evaluate("marey.snapshot().pictures") - n_before
    return float(n_drawn) / (time.perf_counter() - start)
