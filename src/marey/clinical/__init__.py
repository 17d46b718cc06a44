"""Joint angles of people as clinics and biomechanists state them.

`angles` turns the rotations of a motion into flexion, adduction and rotation of
hips, knees, ankles, shoulders, elbows, wrists, trunk and pelvis, in degrees, each with
its standard deviation and with how its zero was found. The conventions are those of
the ISB (Wu 2002, 2005; for the knee Grood and Suntay 1983) or of Plug-in Gait. `gait`
finds the steps of a walk, and averages angles over its cycles.
"""

from marey.clinical.conventions import Convention as Convention
from marey.clinical.joint_angles import JointAngles as JointAngles
from marey.clinical.joint_angles import angles as angles
from marey.clinical.steps import Gait as Gait
from marey.clinical.steps import gait as gait
