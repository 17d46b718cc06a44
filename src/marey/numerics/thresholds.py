"""Thresholds that many stages share, so that each is chosen and explained once.

A number of its own is for a decision whose outcome depends on it. Where doubling and
halving a threshold changes no figure by 1 %, the one of this module serves.
"""

OUTLIER_SD = 3.0
"""Distance from a prediction, in standard deviations, beyond which a value is doubted;
of normal values 0.3 %. Raised, small errors pass. A convention."""

CERTAIN_SD = 5.0
"""Difference, in standard deviations, that is taken for real without other evidence;
of normal values one in two million. Raised, more cases stay undecided. A
convention."""

FEW, MOST = 0.1, 0.9
"""Shares of frames, pairs or markers that count as few and as most. Chosen by hand;
moved towards the middle, quantiles tolerate more outliers and show less of a spread."""

MIN_SAMPLES = 10
"""Fewest values from which a spread, a share or a trend is estimated. Raised, short
takes get fewer estimates. Chosen by hand."""

MIN_DURATION_S = 0.5
"""Smallest duration of a grip or a hold, in seconds. Raised, short ones are missed.
Chosen by hand."""

MIN_JOINTS_BETWEEN = 4
"""Smallest number of joints between two bodies of one tree that can hold each other:
with fewer, a limb cannot bend so that its tip touches the other body. Raised, fewer
grips and holds are found. Chosen by hand."""

MAX_OVERLAP = 0.5
"""Largest overlap in time of two grips of one pair, or of two holds of one body, as a
share of the shorter one. Raised, more rivals are kept. Chosen by hand."""

MAX_NON_ROTATION = 1e-3
"""Largest entry of R^T R - I of an orientation that is a rotation; above it the pose
scales or shears. Raised, such poses pass. Chosen by hand."""

MIN_DETERMINANT = 0.5
"""Determinant of an orientation below which it is no rotation, whose determinant is 1.
Higher refuses more."""

MAX_PLAY_RAD = 0.01
"""Largest rotation, in radians rms, that counts as play of a joint about an axis that
it does not have. No test can separate play from motion, for both are real. Raised, more
joints with a small range about some axis become hinges or universal joints. Chosen by
hand; pins of a recorded pendulum have half of it."""

MOTION_TIME_S = 0.25
"""Time in seconds in which a limb moves on: what was seen before it hardly predicts a
position, a distance or a stance. Raised, predictions bridge longer gaps, and shorter
steps are overlooked. Chosen by hand."""

VELOCITY_TIME_S = 0.05
"""Time in seconds over which a velocity is measured: of feet, of the joints that a
prediction starts from, and of a marker that slips. Raised, it is less noisy, the ends
of a stance are blurred, and motions of the skin count as slips. Chosen by hand."""

MARKER_NOISE_M = 1e-3
"""Usual noise of an optical marker, in metres, where a take does not show its own.
Raised, smaller errors pass. Chosen by hand."""

TINY_LENGTH_M = 1e-9
"""Length below which a vector has no direction, in metres. Guards divisions."""

MIN_POSE_POINTS = 3
"""Points off one line that determine a pose (Horn 1987)."""

SAMPLE_FRAMES = 300
"""Frames from which a shape or a spread is estimated where more would only take longer.
Chosen by hand."""

FOLDS = 5
"""Parts of the data for cross-validation, of which each is predicted from the others
(Hastie, Tibshirani and Friedman 2009, Sec. 7.10)."""

SPACING_RANK = 4
"""The nearest neighbour of this rank gives the spacing of markers around a marker.
Raised, the usual spacing is larger. Chosen by hand."""

GRAVITY = 9.80665
"""Standard acceleration of free fall, in m/s^2 (published, CGPM 1901)."""

MIN_NOISE_SPACINGS = 1e-3
"""Smallest noise of a marker, in usual spacings: exact data have none. Raised, rigid
pairs of markers count less. Chosen by hand; with a tenth of it a wheelchair and its
rider fall into three figures."""

LEVER_ARM_M = 0.1
"""Lever arm that converts rotations to lengths, in metres. Raised, rotations count
more; at 0.1, noise of 1 mm and of 0.6 degrees have equal weights. Chosen by hand."""

SKIN_MOTION_M = 1e-2
"""Usual motion of a marker on skin against the bone below it, in metres. Raised, looser
joints, larger slips and bones of other lengths pass. Chosen by hand."""

FRAMES_PER_CHUNK = 4096
"""Frames of a long recording that are worked on at once where the result does not
depend on it. Higher takes more memory, lower more calls for each frame. Chosen by hand.
"""
