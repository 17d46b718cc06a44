"""Tables of the human: joints, surfaces and marker sets, in units of stature.

Bone lengths along the limbs are those of Drillis and Contini (1966) as Winter prints
them (Biomechanics and Motor Control of Human Movement, Fig. 4.1): foot 0.152, ankle
height 0.039, shank 0.246, thigh 0.245, upper arm 0.186, forearm 0.146, hand 0.108 of
stature. The hip joints are 0.100 apart (de Leva 1996). Those tables do
not give the joint centres of the trunk; the values here were chosen by hand.
"""

from marey.synth.figures.build import JointSpec, SurfaceRow, X, Y, Z

# fmt: off
# Each row of a table takes one or two lines.
TRUNK_ROWS = (
    JointSpec("Hips", "", (0.0, 0.0, 0.540), "root"),
    JointSpec("Spine", "Hips", (0.0, 0.0, 0.060), "ball", (Y, X),
        ((-25, 60), (-30, 30), (-40, 40))),
    JointSpec("Chest", "Spine", (0.0, 0.0, 0.105)),
    JointSpec("Neck", "Chest", (-0.010, 0.0, 0.140), "ball", (Y, X),
        ((-50, 50), (-40, 40), (-70, 70))),
    JointSpec("Head", "Neck", (0.010, 0.0, 0.035)),
    JointSpec("HeadEnd", "Head", (0.0, 0.0, 0.120)),
)
ARM_ROWS = (
    JointSpec("LeftShoulder", "Chest", (0.0, 0.025, 0.113)),
    JointSpec("LeftUpperArm", "LeftShoulder", (0.0, 0.085, 0.0), "ball", (X, -Z),
        ((-100, 90), (-55, 130), (-80, 80)), (-78, 3, 0)),
    JointSpec("LeftLowerArm", "LeftUpperArm", (0.0, 0.186, 0.0), "ball", (-Z, X),
        ((0, 145), (-5, 5), (-85, 85)), (14, 0, 0)),
    JointSpec("LeftHand", "LeftLowerArm", (0.0, 0.146, 0.0), "ball", (-X, -Z),
        ((-65, 75), (-35, 25), (-8, 8)), (8, 0, 0)),
    JointSpec("LeftHandEnd", "LeftHand", (0.0, 0.108, 0.0)),
)
LEG_ROWS = (
    JointSpec("LeftUpperLeg", "Hips", (0.0, 0.050, -0.010), "ball", (-Y, X),
        ((-25, 120), (-30, 50), (-45, 45))),
    JointSpec("LeftLowerLeg", "LeftUpperLeg", (0.0, 0.0, -0.245), "ball", (Y, X),
        ((0, 150), (-4, 4), (-15, 15))),
    JointSpec("LeftFoot", "LeftLowerLeg", (0.0, 0.0, -0.246), "ball", (-Y, Z),
        ((-55, 40), (-25, 25), (-30, 30))),
    JointSpec("LeftHeel", "LeftFoot", (-0.034, 0.0, -0.039)),
    JointSpec("LeftToes", "LeftFoot", (0.100, 0.0, -0.039)),
)
JOINT_ROWS = (*TRUNK_ROWS, *ARM_ROWS, *LEG_ROWS)

SURFACE_ROWS = (
    SurfaceRow("Pelvis", "Hips", (0, 0, -0.045), (0, 0, 0.065), (0.095, 0.083),
        (0.062, 0.060), Y, X, 3.0),
    SurfaceRow("Belly", "Spine", (0, 0, -0.02), (0, 0, 0.14), (0.080, 0.090),
        (0.056, 0.062), Y, X, 5.0),
    SurfaceRow("Chest", "Chest", (0, 0, -0.01), (-0.004, 0, 0.142), (0.094, 0.092),
        (0.066, 0.050), Y, X, 3.4),
    SurfaceRow("LShoulder", "LeftShoulder", (0, -0.01, 0), (0, 0.105, 0),
        (0.038, 0.034), (0.030, 0.034), X, Z, 3.0),
    SurfaceRow("Neck", "Neck", (0, 0, -0.02), (0.008, 0, 0.06), (0.032, 0.030),
        (0.034, 0.032), Y, X, 6.0),
    SurfaceRow("Head", "Head", (0.006, 0, -0.012), (0.006, 0, 0.126), (0.044, 0.044),
        (0.055, 0.055), Y, X, 2.3),
    SurfaceRow("LUpperArm", "LeftUpperArm", (0, -0.01, 0), (0, 0.195, 0),
        (0.031, 0.023), (0.031, 0.023), X, Z, 5.0),
    SurfaceRow("LForearm", "LeftLowerArm", (0, -0.012, 0), (0, 0.150, 0),
        (0.027, 0.017), (0.026, 0.014), X, Z, 5.0),
    SurfaceRow("LHand", "LeftHand", (0, -0.006, 0), (0, 0.108, 0), (0.022, 0.020),
        (0.012, 0.008), X, Z, 3.0),
    SurfaceRow("LThigh", "LeftUpperLeg", (0, 0, 0.03), (0, 0, -0.262), (0.052, 0.031),
        (0.054, 0.032), Y, X, 5.0),
    SurfaceRow("LShank", "LeftLowerLeg", (0, 0, 0.018), (0, 0, -0.256), (0.033, 0.020),
        (0.035, 0.021), Y, X, 5.0),
    SurfaceRow("LFoot", "LeftFoot", (-0.040, 0, -0.017), (0.112, 0, -0.029),
        (0.021, 0.029), (0.022, 0.010), Y, Z, 3.2),
)
# fmt: on

_HEAD = (
    ("LFHD", "Head", 0.66, 50),
    ("RFHD", "Head", 0.66, 130),
    ("LBHD", "Head", 0.66, 310),
    ("RBHD", "Head", 0.66, 230),
)
_TORSO = (
    ("C7", "Chest", 0.93, 270),
    ("T10", "Belly", 0.75, 270),
    ("CLAV", "Chest", 0.88, 90),
    ("STRN", "Chest", 0.20, 90),
    ("RBAC", "Chest", 0.55, 230),
)
_PELVIS = (
    ("LFWT", "Pelvis", 0.80, 50),
    ("RFWT", "Pelvis", 0.80, 130),
    ("LBWT", "Pelvis", 0.76, 292),
    ("RBWT", "Pelvis", 0.76, 248),
)
_LEFT = (
    ("LSHO", "LShoulder", 0.80, 90),
    ("LUPA", "LUpperArm", 0.45, 130),
    ("LELB", "LUpperArm", 0.94, 90),
    ("LFRM", "LForearm", 0.45, 100),
    ("LWRA", "LForearm", 0.93, 0),
    ("LWRB", "LForearm", 0.93, 180),
    ("LFIN", "LHand", 0.55, 75),
    ("LTHI", "LThigh", 0.50, 10),
    ("LKNE", "LThigh", 0.93, 0),
    ("LSHN", "LShank", 0.42, 25),
    ("LANK", "LShank", 0.95, 0),
    ("LHEE", "LFoot", 0.04, 90),
    ("LTOE", "LFoot", 0.74, 90),
    ("LMT5", "LFoot", 0.70, 20),
)
_LEFT_EXTRA = (
    ("LELI", "LUpperArm", 0.94, 270),
    ("LPIN", "LHand", 0.60, 150),
    ("LTHF", "LThigh", 0.62, 90),
    ("LKNI", "LThigh", 0.93, 180),
    ("LANI", "LShank", 0.95, 180),
    ("LMT1", "LFoot", 0.72, 160),
)

MarkerSet = tuple[tuple[str, str, float, float | int], ...]


def _both_sides(left: MarkerSet) -> MarkerSet:
    right = tuple((f"R{a[1:]}", f"R{b[1:]}", u, angle) for a, b, u, angle in left)
    return (*left, *right)


SPARSE41: MarkerSet = (*_HEAD, *_TORSO, *_PELVIS, *_both_sides(_LEFT))
SET53: MarkerSet = (*SPARSE41, *_both_sides(_LEFT_EXTRA))
