"""Still pictures of what was found, for papers and reports.

figure = marey.plot.skeleton(solution)
marey.plot.save(figure, "skeleton.png")

Every function returns a `matplotlib.figure.Figure` of its own: no window opens, and
nothing that matplotlib keeps for its user is changed.
"""

from marey.plot.clustering_plot import clustering as clustering
from marey.plot.length_plot import lengths as lengths
from marey.plot.residual_plot import residuals as residuals
from marey.plot.saving import save as save
from marey.plot.skeleton_plot import skeleton as skeleton
