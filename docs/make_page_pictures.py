"""Take the pictures of the page: python docs/make_page_pictures.py [folder].

Needs Chromium. The performer is generated, so the pictures can be made again anywhere.
"""

import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

import marey
from marey import synth

SOFTWARE = ("--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader")
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
    marey.write(walk, path.with_name("walk.c3d"))
    options = marey.SolveOptions(contacts=True)
    solution = marey.solve(path.with_name("walk.c3d"), options=options)
    marey.write(solution, path, truth=walk.truth.motions)


def take_picture(browser, page, target, theme, frame, selected, keys):
    context = browser.new_context(
        viewport={"width": 1280, "height": 720},
        color_scheme=theme,
        device_scale_factor=2,
    )
    tab = context.new_page()
    tab.goto(page.as_uri())
    while not tab.evaluate("!!window.marey"):
        tab.wait_for_timeout(50)
    for key in keys:
        tab.keyboard.press(key)
    tab.evaluate(f"marey.frame = {frame}")
    tab.evaluate("name => marey.select(name)", selected)
    tab.wait_for_timeout(800)
    tab.evaluate("marey.draw()")
    tab.screenshot(path=target)
    context.close()


def main():
    here = Path(__file__).parent / "images"
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else here
    folder.mkdir(parents=True, exist_ok=True)
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        page = Path(name) / "performer.html"
        performance(page)
        flags = ["--no-sandbox", *SOFTWARE]
        browser = playwright.chromium.launch(executable_path=chromium, args=flags)
        for picture, how in PICTURES.items():
            take_picture(browser, page, folder / f"{picture}.png", *how)
        browser.close()


if __name__ == "__main__":
    main()
