"""The up axis of takes that do not state it, by people whom no label names."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from marey.anatomy import names as vrm
from marey.anatomy.naming import Naming
from marey.bodies import Bodies
from marey.cleaning import Person, correct_up
from marey.joint_fits import JointFits
from marey.numerics import geometry
from marey.pipeline.options import SolveOptions
from marey.pipeline.stages.bodies import (
    BodyFit,
    fit_tree,
    name_anonymous_bodies,
)
from marey.pipeline.stages.takes import LOWER, UPPER
from marey.rig.ground import stands_on_zero
from marey.take import Take


def fit_upright_tree(
    bodies: tuple[Bodies, ...], joints: JointFits, options: SolveOptions
) -> BodyFit:
    """Return the bodies in their tree, in axes in which people stand.

    Clusterings and trees that make a person are preferred, and people are recognised
    best upright. So all is chosen again if people show another axis than was assumed.

    Args:
        bodies: The bodies of each take.
        joints: Joints of all pairs of bodies.
        options: How to solve.
    """
    fit = rotate_upright(fit_tree(bodies, joints, options))
    before = [one.take.source.up.value for one in bodies]
    if before == [take.source.up.value for take in fit.takes]:
        return fit
    upright = tuple(map(_rotate_to, bodies, fit.takes))
    return rotate_upright(fit_tree(upright, joints, options))


def rotate_upright(fit: BodyFit) -> BodyFit:
    """Return the fit in axes in which people stand who are recognised by their looks.

    Only takes whose up axis was assumed change: bodies, joints and tree do not depend
    on the axes of the world.
    """
    if all(_is_known(one.take) for one in fit.bodies):
        return fit
    namings = name_anonymous_bodies(fit)[1]
    upright = [
        one.take
        if _is_known(one.take)
        else correct_up(one.take, _people(one, namings), stands_on_zero)
        for one in fit.bodies
    ]
    if all(take is one.take for take, one in zip(upright, fit.bodies, strict=True)):
        return fit
    bodies = tuple(map(_rotate_to, fit.bodies, upright))
    found = tuple(map(_rotate_to, fit.candidates.bodies, upright))
    candidates = replace(fit.candidates, bodies=found)
    return replace(fit, takes=tuple(upright), bodies=bodies, candidates=candidates)


def _is_known(take: Take) -> bool:
    """Return whether the up axis of a take needs no correction."""
    return not take.source.up.value or take.source.up.how in ("stated", "given")


def _people(bodies: Bodies, namings: Sequence[Naming]) -> list[Person]:
    """Return the people that were recognised, by their bodies."""
    position = bodies.T_world_body[..., :3, 3]
    people = []
    for naming in namings:
        upper = [body for body, name in naming.names.items() if name in UPPER]
        lower = [
            b for b, name in naming.names.items() if vrm.without_side(name) in LOWER
        ]
        if naming.kind == "human" and upper and lower:
            people.append(Person(position[:, upper], position[:, lower]))
    return people


def _rotate_to(bodies: Bodies, upright: Take) -> Bodies:
    """Return the bodies of a take in the axes that the take has now."""
    before, after = bodies.take.source.up.value, upright.source.up.value
    R = geometry.R_Z_UP[after] @ geometry.R_Z_UP[before].T
    T_new_old = geometry.transform(R, np.zeros(3))
    return replace(bodies, take=upright, T_world_body=T_new_old @ bodies.T_world_body)
