"""Still pictures of solutions, for papers and reports.

figure = marey.plot.skeleton(solution)
marey.plot.save(figure, "skeleton.png")

Every function returns a new `matplotlib.figure.Figure`: no window opens, and the user's
settings of matplotlib stay as they are. `style` has the colours and plain axes,
`primitives` the bones, joints and markers, for drawings of your own.
"""

from marey.plot import primitives as primitives
from marey.plot import style as style
from marey.plot.angle_plot import angles as angles
from marey.plot.clustering_plot import clustering as clustering
from marey.plot.length_plot import lengths as lengths
from marey.plot.residual_plot import residual_panel as residual_panel
from marey.plot.residual_plot import residuals as residuals
from marey.plot.saving import save as save
from marey.plot.skeleton_plot import skeleton as skeleton
