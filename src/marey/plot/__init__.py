"""Still pictures of what was found, for papers and reports.

figure = marey.plot.skeleton(solution)
marey.plot.save(figure, "skeleton.png")

Every function returns a `matplotlib.figure.Figure` of its own: no window opens, and
nothing that matplotlib keeps for its user is changed.
"""

from marey.plot._clustering import clustering as clustering
from marey.plot._lengths import lengths as lengths
from marey.plot._residuals import residuals as residuals
from marey.plot._save import save as save
from marey.plot._skeleton import skeleton as skeleton
