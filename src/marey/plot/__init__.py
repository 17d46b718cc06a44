"""Still pictures of solutions, for papers and reports.

figure = marey.plot.skeleton(solution)
marey.plot.save(figure, "skeleton.png")

Every function returns a new `matplotlib.figure.Figure`: no window opens, and the user's
settings of matplotlib stay as they are.
"""

from marey.plot.clustering_plot import clustering as clustering
from marey.plot.length_plot import lengths as lengths
from marey.plot.residual_plot import residuals as residuals
from marey.plot.saving import save as save
from marey.plot.skeleton_plot import skeleton as skeleton
