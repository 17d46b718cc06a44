"""
Foot plants
===========

Planted feet are found in the motion. With `contacts=True` they stay where they are.
"""

import marey

take = marey.synth.human(seed=10).record(
    "walk", seconds=4.0, rate=60.0, markers="set53", noise=1e-3
)
free, held = marey.solve(take), marey.solve(take, contacts=True)
print(free.report.tables["plants"])
print(held.report.tables["plants"])

# %%
# When and where the feet stand:
for contact in held.motion.contacts[:4]:
    print(f"{contact.joint}: {contact.start:.2f} to {contact.end:.2f} s")
stills = marey.plot.skeleton(held)
stills
