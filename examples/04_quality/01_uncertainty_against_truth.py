"""
Uncertainty against truth
=========================

Every length has a standard deviation. The true lengths are known here, so we can see
whether it is right: about two thirds of the thick bars should cross zero.
"""

import marey

take = marey.synth.human(seed=8).record(
    "walk", seconds=5.0, rate=60.0, markers="set53", noise=1e-3, soft_tissue=5e-3
)
solution = marey.solve(take)
lengths = marey.plot.lengths(solution, take.truth.skeleton)
lengths

# %%
# The uncertainty of a pose is that of an angle, frame by frame:
angles = marey.angles(solution.motion)
knee = angles.names.index("left_knee_flexion")
print(f"left knee: ± {angles.sd[:, knee].mean():.2f} degrees")
