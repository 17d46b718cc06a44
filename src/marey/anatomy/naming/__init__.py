"""Names for the bodies of a figure that looks like a person, an animal or a hand.

Which side is left follows from where toes, knees and elbows point. Names of people and
hands are those of the VRM humanoid: Hips, Spine, Chest, Neck, Head, LeftUpperArm, ...
"""

from marey.anatomy.naming.hand import hand
from marey.anatomy.naming.human import person
from marey.anatomy.naming.naming_input import Figure as Figure
from marey.anatomy.naming.naming_input import Naming as Naming
from marey.anatomy.naming.naming_input import path as path
from marey.anatomy.naming.quadruped import animal

KINDS = (animal, person, hand)
"""What a figure may look like, the strictest first."""


def named(figure: Figure) -> Naming | None:
    """Return names for the bodies, None when the figure looks like nothing known."""
    found = (look(figure) for look in KINDS)
    return next((naming for naming in found if naming is not None), None)
