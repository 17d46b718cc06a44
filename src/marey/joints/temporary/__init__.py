"""Temporary joints: bodies that hold together for part of a take, as in a grip.

* `window_motions`: motions of bodies and pairs, window by window.
* `marker_distances`: the same of marker bodies, from distances of their markers.
* `grips`: windows without relative motion, extended to whole grips.
"""

from marey.joints.temporary.grips import find_temporary_joints as find_temporary_joints
