"""Ball joints and hinges between posed bodies (OBrien2000), from sums to a fit.

* `normal_equations`: sums over frames, and the least squares of every pair.
* `closed_form`: their solution, corrected for noisy orientations.
* `hinge`: axes from the null space; universal joints.
* `pair_frames`: one pair frame by frame; weights of frames, spikes.
* `gauss_helmert`: the maximum likelihood refinement of one pair.
* `evidence`: third bodies and averaged poses, for the tree.
* `assemble_fits`: arrays of all pairs to `JointFits`.
* `fit`: the method.
"""
