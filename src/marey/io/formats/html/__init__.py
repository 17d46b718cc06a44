"""One page to look at and to mail: HTML that needs no network and no other file.

It holds the page of `marey view` and a read-only scene: skeleton, markers, uncertainty
and findings, drawn in any browser of today. It is written, not read: the numbers of
other programs are in the other formats.
"""

from marey.io.contract import Format, Output
from marey.io.formats.html.arrays import SceneArrays as SceneArrays
from marey.io.formats.html.arrays import replace_surrogates as replace_surrogates
from marey.io.formats.html.arrays import to_json as to_json
from marey.io.formats.html.page import read_page as read_page
from marey.io.formats.html.scene import MAX_DRAWN_ITEMS as MAX_DRAWN_ITEMS
from marey.io.formats.html.scene import SceneOptions as SceneOptions
from marey.io.formats.html.scene import encode_scene as encode_scene
from marey.io.formats.html.scene import scene_title as scene_title
from marey.io.formats.html.subjects import clinical_angles as clinical_angles
from marey.io.formats.html.subjects import joint_gaps as joint_gaps
from marey.io.formats.html.subjects import marker_residuals as marker_residuals
from marey.io.formats.html.subjects import scene_subjects as scene_subjects
from marey.io.options import WriteOptions
from marey.motion import Motion
from marey.solution import Solution
from marey.take import Take

SIGNATURES = (b"<!doctype html", b"<html")


def sniff(head: bytes) -> bool:
    """Whether a file is a web page."""
    return head.lstrip()[:14].lower().startswith(SIGNATURES)


def write_page(thing: Take | Motion | Solution, options: WriteOptions) -> Output:
    """Return the page of a thing."""
    options.check_world("m", "z")
    page = read_page()
    scene_options = SceneOptions(truth=options.truth, measured=options.measured)
    scene, title = encode_scene(thing, scene_options), scene_title(thing)
    return {"": [page.with_scene(scene, title, options.provenance_text())]}


FORMAT = Format(
    name="html",
    title="page for any browser",
    suffixes=(".html",),
    sniff=sniff,
    write_take=write_page,
    write_motion=write_page,
    write_solution=write_page,
    shows=("truth", "measured"),
    loses=("analog", "events", "computed", "confidence"),
    precision=5e-6,
)
