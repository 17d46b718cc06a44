"""ASF, the skeleton of the Acclaim format of Vicon and the CMU database.

A number of the file divided by its length factor is in inches. The up axis is not
stated; Y is usual in the CMU database. An AMC file holds the motion.
"""

import re

from marey.io.contract import Format
from marey.io.file import File
from marey.io.formats.asf.read import read_asf
from marey.io.formats.asf.skeleton import convert_skeleton, decide_unit
from marey.io.formats.asf.write import write_skeleton
from marey.io.text.encoding import normalize_text
from marey.skeleton import Skeleton

SIGNATURE = re.compile(
    rb"^[ \t]*:(version|units|root|bonedata|hierarchy)\b", re.I | re.M
)


def sniff(head: bytes) -> bool:
    """Whether a file begins like an ASF."""
    return bool(SIGNATURE.search(normalize_text(head)))


def read_skeleton(file: File) -> Skeleton:
    """Return the skeleton of an ASF."""
    asf = read_asf(file)
    _, scale = decide_unit(file, asf)
    up = file.decide_fact("up", assumed="y", note="ASF does not state it")
    return convert_skeleton(asf, scale, up.value).skeleton


FORMAT = Format(
    name="asf",
    title="ASF (Acclaim skeleton; Vicon, CMU)",
    suffixes=(".asf",),
    sniff=sniff,
    read_skeleton=read_skeleton,
    write_skeleton=write_skeleton,
    loses=("markers on bones", "uncertainty"),
    precision=1e-6,
)
