"""
Markers without labels to a skeleton
====================================

Nobody labelled these markers. Bodies, joints, tree and names are found from the motion.
"""

import marey

take = marey.synth.human(seed=5).record(
    "chicken_walk",
    seconds=6.0,
    rate=60.0,
    markers="set53",
    labels=False,
    noise=1e-3,
)
print(take.labels[:4])
solution = marey.solve(take)
print(marey.metrics.compare(solution, take))

# %%
# The distance of two markers on one body is constant: the matrix is dark there.
clusters = marey.plot.clustering(solution)
clusters

# %%
# The skeleton, with the true one in yellow:
stills = marey.plot.skeleton(solution, truth=take)
stills
