"""Skeletons from bodies, joints and a tree: offsets, axes, kinds, names, markers."""

from marey.rig.body_names import anonymous_figures as anonymous_figures
from marey.rig.body_names import has_default_name as has_default_name
from marey.rig.body_names import name_bodies as name_bodies
from marey.rig.body_names import names_by_looks as names_by_looks
from marey.rig.build import build_skeleton as build_skeleton
from marey.rig.build import build_skeletons as build_skeletons
from marey.rig.build import unknown_rolls as unknown_rolls
from marey.rig.lengths import bone_lengths as bone_lengths
from marey.rig.lengths import with_bone_lengths as with_bone_lengths
from marey.rig.lengths import with_constant_lengths as with_constant_lengths
