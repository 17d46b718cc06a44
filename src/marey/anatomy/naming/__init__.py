"""Names for the bodies of a figure that has the shape of a person, an animal or a hand.

Names of people and hands are those of the VRM humanoid, see `marey.anatomy.names`. The
left side follows from the direction of toes, knees and elbows. A new kind of figure is
one file in this folder with a function from `NamingInput` to `Naming | None`, and one
line in `RECOGNISERS`.
"""

from marey.anatomy.naming.hand import name_hand
from marey.anatomy.naming.human import name_person
from marey.anatomy.naming.naming_input import (
    MIN_SIDE_CONFIDENCE as MIN_SIDE_CONFIDENCE,
)
from marey.anatomy.naming.naming_input import Naming as Naming
from marey.anatomy.naming.naming_input import NamingInput as NamingInput
from marey.anatomy.naming.naming_input import find_path as find_path
from marey.anatomy.naming.quadruped import name_quadruped

RECOGNISERS = (name_hand, name_quadruped, name_person)
"""Functions that recognise one kind of figure each; the strictest comes first."""


def find_names(figure: NamingInput) -> Naming | None:
    """Return the names of the bodies by the first recogniser that accepts the figure.

    None if the figure is of no known kind.
    """
    namings = (recogniser(figure) for recogniser in RECOGNISERS)
    return next((naming for naming in namings if naming is not None), None)
