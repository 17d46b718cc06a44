"""Markers and sensors of a recording put on a skeleton that is given.

The recording is solved freely first. Joints of the given skeleton are matched with
those of the free one (`match`; without names, `tree_match`), bones are compared
(`bones`) and, if asked for, adapted (`lengths`), and what is attached to the free
skeleton is carried over (`placement`) and fitted, with the joint centres of the free
motion as further markers (`centers`).
"""

from marey.attach.bones import BoneComparison as BoneComparison
from marey.attach.bones import compare_bones as compare_bones
from marey.attach.bones import scale_skeleton as scale_skeleton
from marey.attach.bones import strip as strip
from marey.attach.centers import add_center_markers as add_center_markers
from marey.attach.centers import add_center_points as add_center_points
from marey.attach.centers import center_labels as center_labels
from marey.attach.centers import drop_center_findings as drop_center_findings
from marey.attach.centers import drop_center_markers as drop_center_markers
from marey.attach.lengths import adapt_lengths as adapt_lengths
from marey.attach.match import JointMatch as JointMatch
from marey.attach.match import SkeletonMatch as SkeletonMatch
from marey.attach.match import match_joints as match_joints
from marey.attach.match import match_skeletons as match_skeletons
from marey.attach.placement import carry_over as carry_over
from marey.attach.template import place_template as place_template
