"""glTF 2.0, the scene format of the web: figures with a body, skinned and animated.

`.glb` is one binary file; `.gltf` is JSON with the same bytes inside, in base64. Every
subject has a tree of nodes, a skin and a mesh; every take is an animation of all
subjects. Metres and +Y up, as the format demands; at rest all joints have the axes of
the world. It is written, not read. Facts: Khronos Group, glTF 2.0 Specification.
"""

from marey.io.contract import Output, WriteOptions
from marey.io.formats.gltf.container import glb_bytes, gltf_bytes
from marey.io.formats.gltf.document import build_document
from marey.io.scene import build_scene, scene_format
from marey.motion import Motion
from marey.skeleton import Skeleton
from marey.solution import Solution

MAGIC = b"glTF"


def sniff(head: bytes) -> bool:
    """Whether a file begins like a GLB, or like the JSON of a glTF."""
    text = head.lstrip()
    return head.startswith(MAGIC) or (text.startswith(b"{") and b'"asset"' in text)


def write_scene(thing: Skeleton | Motion | Solution, options: WriteOptions) -> Output:
    """Return the glTF of a skeleton at rest, of a motion, or of all subjects and takes.

    Raises:
        OptionError: If another unit than the metre or another axis than y is asked for.
        DataError: If frames are not evenly spaced, or more than the format can time.
    """
    options.check_world("m", "y")
    document, data = build_document(build_scene(thing, markers=options.markers))
    as_text = options.suffix == ".gltf"
    return {"": gltf_bytes(document, data) if as_text else glb_bytes(document, data)}


FORMAT = scene_format(
    name="gltf",
    title="glTF scene",
    suffixes=(".glb", ".gltf"),
    sniff=sniff,
    write=write_scene,
)
