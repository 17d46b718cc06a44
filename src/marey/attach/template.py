"""A template: a marker set that was put on one skeleton, for skeletons of others."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from marey.attach.match import JointMatch, match_joints, matched_below, nearest_match
from marey.attach.placement import carry_over
from marey.errors import OptionError
from marey.numerics import Array, Float
from marey.skeleton import Skeleton


def place_template(skeleton: Skeleton, template: Skeleton) -> Skeleton:
    """Return a skeleton with the markers and sensors of another one's.

    A marker set is put on one skeleton by hand or by calibration, once, and serves
    every performer (Zordan2003, Secs. 2.2 and 5). Each marker keeps its place on its
    bone; its offset grows with the length of the bone, and at the ends of limbs with
    the skeleton. No recording is needed, and none corrects the places: a misplaced
    marker draws the pose with it. `marey.solve(take, skeleton=...)` fits the places to
    a recording.

    Args:
        skeleton: Skeleton whose bones are kept; its own markers and sensors are
            replaced.
        template: Skeleton with markers or sensors. Joints are matched by name, those of
            people in any known scheme.

    Raises:
        OptionError: If the template has neither markers nor sensors, or its joints do
            not correspond to those of the skeleton.
    """
    if not template.marker_labels and not template.sensor_names:
        raise OptionError(
            "template",
            found="a skeleton without markers",
            needed="a skeleton with markers or sensors, such as `Solution.skeleton`",
        )
    matches = match_joints(skeleton, template)
    if not matches:
        raise OptionError(
            "template",
            found=f"joints {', '.join(template.names)}",
            needed=f"some that correspond to {', '.join(skeleton.names)}",
        )
    factor = bone_factors(skeleton, template, {match.free: match for match in matches})
    return carry_over(skeleton, _resize(template, factor), matches)


def _resize(template: Skeleton, factor: Float[Array, " joint"]) -> Skeleton:
    """Return the template with bones, markers and sensors of another size, by joint."""
    T_joint_sensor = template.T_joint_sensor.copy()
    T_joint_sensor[:, :3, 3] *= factor[template.sensor_joint, None]
    return replace(
        template,
        offset=factor[np.maximum(template.parent, 0), None] * template.offset,
        marker_offset=factor[template.marker_joint, None] * template.marker_offset,
        T_joint_sensor=T_joint_sensor,
    )


def bone_factors(
    skeleton: Skeleton, template: Skeleton, matched: Mapping[int, JointMatch]
) -> Float[Array, " joint"]:
    """Return the length of each bone over that of the template, by template joint.

    A bone leads to the next joint of the limb. Bones of trunk and head, hands and feet,
    whose joints every skeleton has elsewhere, have the factor of all long bones
    together.
    """
    rest_given, rest_free = (s.rest()[:, :3, 3] for s in (skeleton, template))
    lengths = {}
    for i, match in matched.items():
        below = [matched[j] for j in matched_below(template, matched, i)]
        if match.weight == 1.0 and len(below) == 1 and below[0].weight == 1.0:
            lengths[i] = (
                np.linalg.norm(rest_given[below[0].joint] - rest_given[match.joint]),
                np.linalg.norm(rest_free[below[0].free] - rest_free[i]),
            )
    total = np.sum(list(lengths.values()), axis=0) if lengths else (1.0, 1.0)
    every = total[0] / total[1]
    factor = np.full(template.n_joints, every)
    for joint in range(template.n_joints):
        carrier = nearest_match(template, matched, joint).free
        given, own = lengths.get(carrier, (every, 1.0))
        factor[joint] = given / own if own > 0.0 else every
    return factor
