"""One page to look at and to mail: HTML that needs no network and no other file.

It holds the page of `marey view` and the scene, read-only: skeleton, markers, doubts
and findings, drawn in any browser of today. It is written, not read: the numbers of
other programs are in the other formats.
"""

from marey.errors import OptionError
from marey.io.contract import Format, Output, WriteOptions
from marey.io.formats.html.arrays import Arrays as Arrays
from marey.io.formats.html.arrays import plain as plain
from marey.io.formats.html.arrays import plain_text as plain_text
from marey.io.formats.html.page import read_page as read_page
from marey.io.formats.html.scene import MOST_DRAWN as MOST_DRAWN
from marey.io.formats.html.scene import Beside as Beside
from marey.io.formats.html.scene import scene_of as scene_of
from marey.io.formats.html.scene import title_of as title_of
from marey.io.formats.html.subjects import figures_of as figures_of
from marey.io.formats.html.subjects import gaps_of as gaps_of
from marey.io.formats.html.subjects import strays as strays
from marey.motion import Motion
from marey.solution import Solution
from marey.take import Take

HEADS = (b"<!doctype html", b"<html")


def sniff(head: bytes) -> bool:
    """Whether a file is a web page."""
    return head.lstrip()[:14].lower().startswith(HEADS)


def write_any(thing: Take | Motion | Solution, options: WriteOptions) -> Output:
    """Return the page of a thing."""
    if options.unit not in (None, "m") or options.up not in (None, "z"):
        raise OptionError(
            "unit, up",
            found=(options.unit, options.up),
            needed="m and z: a page has no other",
        )
    page = read_page()
    beside = Beside(truth=options.truth, measured=options.measured)
    return {"": [page.mailed(scene_of(thing, beside), title_of(thing))]}


FORMAT = Format(
    name="html",
    title="page for any browser",
    suffixes=(".html",),
    sniff=sniff,
    write_take=write_any,
    write_motion=write_any,
    write_solution=write_any,
    loses=("analog", "events"),
    precision=5e-6,
)
