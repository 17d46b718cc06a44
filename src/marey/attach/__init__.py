"""Markers and sensors of a recording put on a skeleton that is given.

The recording is solved freely first. Joints of the given skeleton are matched with
those of the free one (`match`), bones are compared and, if asked for, adapted
(`bones`), and what is attached to the free skeleton is carried over (`placement`) and
fitted, with the joint centres of the free motion as further markers (`centres`).
"""

from marey.attach.bones import BoneComparison as BoneComparison
from marey.attach.bones import adapt_lengths as adapt_lengths
from marey.attach.bones import compare_bones as compare_bones
from marey.attach.bones import scale_skeleton as scale_skeleton
from marey.attach.bones import strip as strip
from marey.attach.centres import add_centre_markers as add_centre_markers
from marey.attach.centres import add_centre_points as add_centre_points
from marey.attach.centres import centre_labels as centre_labels
from marey.attach.centres import drop_centre_markers as drop_centre_markers
from marey.attach.match import JointMatch as JointMatch
from marey.attach.match import match_joints as match_joints
from marey.attach.placement import carry_over as carry_over
