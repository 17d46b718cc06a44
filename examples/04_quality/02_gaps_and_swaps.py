"""
Gaps and swaps repaired
=======================

Labels are swapped four times and a tenth of all positions is missing. Cleaning swaps
the labels back and fills short gaps.
"""

import numpy as np

import marey

take = marey.synth.human(seed=9).record(
    "kick_punch",
    seconds=6.0,
    rate=60.0,
    markers="set53",
    noise=1e-3,
    gaps=0.1,
    swaps=4,
)
clean = marey.clean(take, max_gap=0.25)
for finding in clean.source.findings:
    print(finding)


# %%
# Positions that are more than 2 cm from the truth, before and after:
def wrong(positions):
    """Return the number of wrong positions."""
    error = np.linalg.norm(positions - take.truth.points, axis=-1)
    return int((error > 0.02).sum())


print(f"seen: {take.seen.mean():.1%} before, {clean.seen.mean():.1%} after")
print(f"wrong: {wrong(take.points)} before, {wrong(clean.points)} after")
