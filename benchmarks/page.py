"""Frames per second of the page, without a graphics card, and how fast it opens.

A performer with 53 markers walks at 720p; the browser draws in software, in both ways
that Chromium has. The time to read 5,000 frames of 53 markers is the page's own.
"""

import shutil
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import marey
from marey import synth
from marey.take import Take

MODES = {
    "swiftshader": ("--use-angle=swiftshader", "--enable-unsafe-swiftshader"),
    "gl-egl": ("--use-angle=gl-egl", "--ignore-gpu-blocklist"),
}
QUIET = ("--no-sandbox", "--no-first-run", "--disable-dev-shm-usage", "--use-gl=angle")
SECONDS = 5.0


def pages(folder):
    figure = synth.human(1.8, seed=3)
    walk = figure.record("walk", seconds=4.0, rate=120.0, markers="set53", noise=1e-3)
    marey.write(marey.solve(walk), folder / "walk.html")
    rng = np.random.default_rng(0)
    points = np.cumsum(rng.normal(scale=1e-3, size=(5000, 53, 3)), axis=0)
    labels = tuple(f"m{i}" for i in range(53))
    marey.write(Take(rate=120.0, points=points, labels=labels), folder / "long.html")


def opened(browser, path):
    page = browser.new_page(viewport={"width": 1280, "height": 720})
    page.goto(path.as_uri())
    while not page.evaluate("!!window.marey"):
        page.wait_for_timeout(50)
    return page


def frame_rate(page):
    page.keyboard.press("Space")
    page.wait_for_timeout(500)
    drawn, begun = page.evaluate("marey.snapshot().pictures"), time.perf_counter()
    page.wait_for_timeout(1000 * SECONDS)
    more = page.evaluate("marey.snapshot().pictures") - drawn
    return more / (time.perf_counter() - begun)


def main():
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if not chromium:
        sys.exit("no Chromium on this machine: nothing to measure")
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        pages(folder)
        for mode, flags in MODES.items():
            browser = playwright.chromium.launch(
                executable_path=chromium, args=[*QUIET, *flags]
            )
            rate = frame_rate(opened(browser, folder / "walk.html"))
            long = opened(browser, folder / "long.html")
            read = long.evaluate("marey.snapshot().decodeMilliseconds")
            browser.close()
            print(f"{mode:12} {rate:5.1f} frames/s   5000 x 53 read in {read:4.0f} ms")
        for path in sorted(folder.glob("*.html")):
            print(f"{path.name:12} {path.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
