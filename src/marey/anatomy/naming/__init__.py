"""Names for the bodies of a figure that has the shape of a person, an animal or a hand.

Names of people and hands are those of the VRM humanoid, see `marey.anatomy.names`. The
left side follows from toes, knees, elbows and the direction of travel. A new kind of
figure is one file in this folder with a function from `NamingInput` to `Naming | None`,
and one line in `RECOGNISERS`.
"""

from functools import lru_cache

from marey.anatomy.naming.hand import name_hand
from marey.anatomy.naming.human import LEG_MIDDLES as LEG_MIDDLES
from marey.anatomy.naming.human import legs_that_lack_parts as legs_that_lack_parts
from marey.anatomy.naming.human import name_person
from marey.anatomy.naming.limb_readings import UNNAMED_BODY_COST
from marey.anatomy.naming.limbs import MIN_COST_MARGIN as MIN_COST_MARGIN
from marey.anatomy.naming.naming_input import (
    MIN_SIDE_CONFIDENCE as MIN_SIDE_CONFIDENCE,
)
from marey.anatomy.naming.naming_input import Naming as Naming
from marey.anatomy.naming.naming_input import NamingInput as NamingInput
from marey.anatomy.naming.naming_input import find_path as find_path
from marey.anatomy.naming.quadruped import name_quadruped

RECOGNISERS = (name_hand, name_quadruped, name_person)
"""Functions that recognise one kind of figure each; the strictest comes first."""


@lru_cache(maxsize=16)  # stages of one solve ask for the names of the same figures
def find_names(figure: NamingInput) -> Naming | None:
    """Return the names of the bodies by the first recogniser that accepts the figure.

    None if the figure is of no known kind. The smallest are hips with two thighs.
    """
    if len(figure.neighbours) < 3:
        return None
    namings = (recogniser(figure) for recogniser in RECOGNISERS)
    return next((naming for naming in namings if naming is not None), None)


def naming_cost(figure: NamingInput) -> float:
    """Return how badly a figure fits a person, in the costs of its names.

    That of `UNNAMED_BODY_COST` for every body if it is of no known kind, and never
    more; 0 if it is of another kind.
    """
    naming, n_bodies = find_names(figure), len(figure.neighbours)
    unnamed = UNNAMED_BODY_COST * n_bodies
    if naming is None or naming.kind != "human":
        return unnamed if naming is None else 0.0
    return min(n_bodies * (1.0 / naming.fit - 1.0), unnamed)
