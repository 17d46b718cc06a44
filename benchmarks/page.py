"""Frame rate of the page without a graphics card, and the time to decode a long take.

A performer with 53 markers walks at 720p. Chromium renders in software, with each of
its two software renderers. The time to decode 5,000 frames is measured by the page.
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
PLAY_SECONDS = 5.0


def write_pages(folder):
    figure = synth.human(1.8, seed=3)
    walk = figure.record("walk", seconds=4.0, rate=120.0, markers="set53", noise=1e-3)
    marey.write(marey.solve(walk), folder / "walk.html")
    rng = np.random.default_rng(0)
    points = np.cumsum(rng.normal(scale=1e-3, size=(5000, 53, 3)), axis=0)
    labels = tuple(f"m{i}" for i in range(53))
    marey.write(Take(rate=120.0, points=points, labels=labels), folder / "long.html")


def open_page(browser, path):
    page = browser.new_page(viewport={"width": 1280, "height": 720})
    page.goto(path.as_uri())
    while not page.evaluate("!!window.marey"):
        page.wait_for_timeout(50)
    return page


def measure_frame_rate(page):
    page.keyboard.press("Space")
    page.wait_for_timeout(500)
    n_before, start = page.evaluate("marey.snapshot().pictures"), time.perf_counter()
    page.wait_for_timeout(1000 * PLAY_SECONDS)
    n_drawn = page.evaluate("marey.snapshot().pictures") - n_before
    return n_drawn / (time.perf_counter() - start)


def main():
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if not chromium:
        sys.exit("no Chromium on this machine: nothing to measure")
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        write_pages(folder)
        for renderer, flags in RENDERER_FLAGS.items():
            browser = playwright.chromium.launch(
                executable_path=chromium, args=[*BROWSER_FLAGS, *flags]
            )
            rate = measure_frame_rate(open_page(browser, folder / "walk.html"))
            long = open_page(browser, folder / "long.html")
            decode_ms = long.evaluate("marey.snapshot().decodeMilliseconds")
            browser.close()
            decoding = f"5000 x 53 decoded in {decode_ms:4.0f} ms"
            print(f"{renderer:12} {rate:5.1f} frames/s   {decoding}")
        for path in sorted(folder.glob("*.html")):
            print(f"{path.name:12} {path.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
