"""
Markers with sensors
====================

Sensors on forearms and shanks are recorded beside 53 markers, a tenth of a second late.
The delay is estimated.
"""

import marey

take = marey.synth.human(seed=6).record(
    "chicken_walk",
    seconds=5.0,
    rate=100.0,
    markers="set53",
    sensors=("LeftLowerArm", "RightLowerArm", "LeftLowerLeg", "RightLowerLeg"),
    noise=1e-3,
    turn_noise=5e-3,
    sensor_delay=0.1,
)
solution = marey.solve(take)
for finding in solution.report.findings:
    if finding.code in ("time-offset", "markers-and-sensors"):
        print(finding)
print(len(solution.skeleton.sensor_names), "sensors on bones")

# %%
# The motion that explains both:
stills = marey.plot.skeleton(solution, truth=take)
stills
