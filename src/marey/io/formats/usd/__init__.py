"""USD, the scene format of film: figures with a body, skinned and animated by UsdSkel.

`.usda` is text, `.usdc` binary. Every subject is a SkelRoot with a skeleton, a mesh and
an animation for every take; with several takes the variant set "take" chooses. Metres
and +Z up by default; Y up and other units are stated in the file. It needs the extra
`usd`, and is written, not read.
"""

from marey.errors import OptionError
from marey.io.contract import Output
from marey.io.formats.usd.stage import (
    build_stage,
    import_usd,
    joint_identifiers,
    stage_bytes,
)
from marey.io.options import WriteOptions
from marey.io.scene import build_scene, scene_format
from marey.io.text.names import note_changed_names
from marey.motion import Motion
from marey.skeleton import Skeleton
from marey.solution import Solution

TEXT_MAGIC, BINARY_MAGIC = b"#usda ", b"PXR-USDC"
UP_AXES = ("y", "z")


def sniff(head: bytes) -> bool:
    """Whether a file begins like USD, as text or binary."""
    return head.startswith((TEXT_MAGIC, BINARY_MAGIC))


def write_scene(thing: Skeleton | Motion | Solution, options: WriteOptions) -> Output:
    """Return the USD of a skeleton at rest, of a motion, or of all subjects and takes.

    Raises:
        OptionError: If another axis than y or z is to point up.
        DataError: If frames are not evenly spaced.
        MissingExtraError: If usd-core is not installed.
    """
    world = options.world("m", "z")
    if world.up not in UP_AXES:
        raise OptionError("up", found=world.up, needed="y or z: USD has no other")
    scene = build_scene(thing, markers=options.markers)
    stage = build_stage(scene, world)
    if options.provenance:
        data = {"provenance": options.provenance_text()}
        stage.GetRootLayer().customLayerData = data
    for figure in scene.figures:
        names = figure.skeleton.names
        note_changed_names(names, joint_identifiers(names), options)
    suffix = options.suffix if options.suffix in FORMAT.suffixes else ".usda"
    return {"": [stage_bytes(stage, suffix)]}


FORMAT = scene_format(
    name="usd",
    title="USD scene",
    suffixes=(".usda", ".usdc"),
    sniff=sniff,
    write=write_scene,
    import_packages=import_usd,
)
