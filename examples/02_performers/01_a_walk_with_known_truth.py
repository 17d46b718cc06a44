"""
A walk with known truth
=======================

Record a synthetic walk with noise, gaps and swaps, and compare with the truth.
"""

import numpy as np

import marey

performer = marey.synth.human(height=1.75, seed=3)
recording = performer.record(
    motion="walk", markers="set53", noise=1e-3, gaps=0.1, swaps=2, seed=3
)
truth = recording.truth
error_m = np.linalg.norm(recording.points - truth.points, axis=-1)
print(f"{np.nanmedian(error_m) * 1e3:.2f} mm median error")
print(f"{len(truth.log)} changes in the log, such as {truth.log[0]}")
for contact in truth.motions[0].contacts[:3]:
    print(f"{contact.joint} is planted from {contact.start:.2f} to {contact.end:.2f} s")

# %%
# The true motion:
stills = marey.plot.skeleton(truth.motions[0])
stills
