"""Tables of the quadruped: joints and surfaces, in units of its height at the withers.

The sizes are those of a medium dog and were chosen by eye.
"""

from marey.synth.figures.build import JointSpec, SurfaceRow, X, Y, Z

_SPINE_LIMITS = ((-30, 30), (-30, 30), (-25, 25))
_HIP_LIMITS = ((-50, 60), (-20, 30), (-20, 20))
_PAW_LIMITS = ((-50, 50), (-15, 15), (-15, 15))

# fmt: off
# Each row of a table takes one or two lines.
JOINT_ROWS = (
    JointSpec("Hips", "", (0.0, 0.0, 0.92), "root"),
    JointSpec("Spine", "Hips", (0.22, 0.0, 0.03), "ball", (Y, Z), _SPINE_LIMITS),
    JointSpec("Chest", "Spine", (0.42, 0.0, 0.0)),
    JointSpec("Neck", "Chest", (0.20, 0.0, 0.08), "ball", (Y, Z), _SPINE_LIMITS),
    JointSpec("Head", "Neck", (0.22, 0.0, 0.24), "ball", (Y, Z), _SPINE_LIMITS),
    JointSpec("HeadEnd", "Head", (0.30, 0.0, -0.06)),
    JointSpec("Tail", "Hips", (-0.20, 0.0, 0.04), "ball", (Y, Z), _SPINE_LIMITS),
    JointSpec("TailEnd", "Tail", (-0.42, 0.0, 0.08)),
    JointSpec("LeftUpperArm", "Chest", (0.08, 0.14, -0.12), "ball", (-Y, X),
        _HIP_LIMITS),
    JointSpec("LeftLowerArm", "LeftUpperArm", (-0.12, 0.0, -0.32), "hinge", (-Y, X),
        ((-45, 90),)),
    JointSpec("LeftHand", "LeftLowerArm", (0.06, 0.0, -0.36), "ball", (-Y, Z),
        _PAW_LIMITS),
    JointSpec("LeftFingers", "LeftHand", (0.06, 0.0, -0.15)),
    JointSpec("LeftUpperLeg", "Hips", (-0.04, 0.13, -0.06), "ball", (-Y, X),
        _HIP_LIMITS),
    JointSpec("LeftLowerLeg", "LeftUpperLeg", (0.12, 0.0, -0.34), "hinge", (Y, X),
        ((-50, 80),)),
    JointSpec("LeftFoot", "LeftLowerLeg", (-0.22, 0.0, -0.30), "ball", (-Y, Z),
        _PAW_LIMITS),
    JointSpec("LeftToes", "LeftFoot", (0.08, 0.0, -0.22)),
)

SURFACE_ROWS = (
    SurfaceRow("Pelvis", "Hips", (-0.22, 0, 0.01), (0.28, 0, 0.01), (0.13, 0.14),
        (0.13, 0.15), Y, Z, 3.0),
    SurfaceRow("Chest", "Spine", (-0.06, 0, -0.01), (0.64, 0, -0.04), (0.13, 0.16),
        (0.14, 0.19), Y, Z, 3.0),
    SurfaceRow("Neck", "Neck", (-0.04, 0, -0.06), (0.24, 0, 0.24), (0.11, 0.07),
        (0.12, 0.08), Y, Z, 4.0),
    SurfaceRow("Head", "Head", (-0.07, 0, 0.03), (0.30, 0, -0.06), (0.10, 0.05),
        (0.10, 0.05), Y, Z, 3.0),
    SurfaceRow("Tail", "Tail", (0, 0, 0), (-0.42, 0, 0.08), (0.03, 0.02), (0.03, 0.02),
        Y, Z),
    SurfaceRow("LUpperArm", "LeftUpperArm", (0, 0, 0.04), (-0.12, 0, -0.34),
        (0.06, 0.045), (0.09, 0.06), Y, X),
    SurfaceRow("LForearm", "LeftLowerArm", (0, 0, 0.02), (0.06, 0, -0.38),
        (0.045, 0.03), (0.055, 0.03), Y, X),
    SurfaceRow("LPaw", "LeftHand", (0, 0, 0.02), (0.07, 0, -0.15), (0.035, 0.045),
        (0.032, 0.03), Y, X, 3.0),
    SurfaceRow("LThigh", "LeftUpperLeg", (0, 0, 0.05), (0.12, 0, -0.36), (0.075, 0.05),
        (0.13, 0.07), Y, X),
    SurfaceRow("LShank", "LeftLowerLeg", (0, 0, 0.02), (-0.22, 0, -0.31), (0.05, 0.03),
        (0.065, 0.035), Y, X),
    SurfaceRow("LFoot", "LeftFoot", (0, 0, 0.02), (0.09, 0, -0.22), (0.033, 0.045),
        (0.035, 0.03), Y, X, 3.0),
)
# fmt: on
