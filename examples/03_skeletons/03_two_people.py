"""
Two people in one recording
===========================

Two people walk side by side, and their markers have no labels. Each gets a skeleton of
its own.
"""

import marey

take = marey.synth.scene(
    "together", seconds=5.0, rate=60.0, markers="set53", labels=False, noise=1e-3
)
solution = marey.solve(take)
for subject in solution.subjects:
    skeleton = subject.skeleton
    print(f"{subject.name}: {len(skeleton.marker_labels)} markers")

# %%
# The first of the two:
stills = marey.plot.skeleton(solution.subjects[0].motions[0])
stills
