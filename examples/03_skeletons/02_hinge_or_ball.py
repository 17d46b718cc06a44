"""
Hinge or ball
=============

The kind of a joint follows from its motion. A hinge has an axis, and its centre is free
along that axis; a ball has one centre.
"""

import numpy as np

import marey

take = marey.synth.hinge_pair().record("swing", rate=60.0, noise=1e-3)
skeleton = marey.solve(take).skeleton
print(skeleton.kind[1], "along", np.round(skeleton.axes[1, 0], 2))

# %%
# Its centre is known across the axis and free along it (standard deviations):
print(np.round(np.sqrt(np.linalg.eigvalsh(skeleton.covariance[1])) * 1e3, 1), "mm")

# %%
# A person moves one joint after the other. The elbow bends and twists:
# it is a ball, whose centre is known in all directions.
take = marey.synth.human(seed=1).record(
    "exercise", rate=30.0, sensors=True, markers="none", noise=1e-3, turn_noise=5e-3
)
solution = marey.solve(take)
skeleton = solution.skeleton
elbow = skeleton.index("LeftLowerArm")
sd_m = np.sqrt(np.linalg.eigvalsh(skeleton.covariance[elbow]))
print(skeleton.kind[elbow], np.round(sd_m * 1e3, 1), "mm")

# %%
# The ellipses are standard deviations of joint centres, enlarged as the legend says.
stills = marey.plot.skeleton(solution)
stills
