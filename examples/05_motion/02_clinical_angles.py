"""
Clinical angles over the gait cycle
===================================

Hip, knee and ankle of a walk in the ISB convention, and the numbers of the gait.
"""

import marey

take = marey.synth.human(seed=3).record(
    "walk", seconds=5.0, rate=60.0, markers="set53", noise=1e-3, soft_tissue=5e-3
)
motion = marey.solve(take).motion
angles, steps = marey.angles(motion), marey.gait(motion)
print(f"{steps.cadence:.0f} steps per minute, {steps.speed:.2f} m/s")
cycles = marey.plot.angles(angles, gait=steps)
cycles

# %%
# The same angles over time, with a band of one standard deviation of the pose:
over_time = marey.plot.angles(angles, names=("knee_flexion",))
over_time
