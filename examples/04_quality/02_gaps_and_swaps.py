"""
Gaps and swaps repaired
=======================

Labels are swapped four times and a tenth of all positions is missing. Cleaning swaps
the labels back and fills short gaps.
"""

import numpy as np
from matplotlib.figure import Figure

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
before_m, after_m = (
    np.linalg.norm(points - take.truth.points, axis=-1)
    for points in (take.points, clean.points)
)
print(f"seen: {take.seen.mean():.1%} before, {clean.seen.mean():.1%} after")
print(f"wrong: {(before_m > 0.02).sum()} before, {(after_m > 0.02).sum()} after")

# %%
# The largest error of any marker that is seen, over time:
figure = Figure(figsize=(7.0, 3.0))
axes = figure.subplots()
for error_m, name in ((before_m, "recorded"), (after_m, "cleaned")):
    axes.semilogy(take.times, np.nanmax(error_m, axis=1) * 1e3, label=name)
axes.set_xlabel("time, s")
axes.set_ylabel("largest error, mm")
axes.legend()
figure
