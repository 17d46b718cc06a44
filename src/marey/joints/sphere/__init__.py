"""Joint centres as centres of spheres (Knight2007, GDKE), from moments to a fit.

* `moments`: sums over positions.
* `algebraic`: the Delogne-Kasa fit in closed form, and the same without its bias.
* `geometric`: least squares of the radii.
* `sandwich`: covariance from the influence of every frame.
* `fit`: one sphere or circle, and the kind of motion.
* `sides`: a joint in the axes of one body, and of both.
* `gdke`: the method.
"""
