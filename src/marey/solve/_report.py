"""What a solve says of its answer."""

from collections.abc import Iterator

import numpy as np

from marey.bodies import Bodies
from marey.joints import JointFits
from marey.report import Finding, Table
from marey.rig.naming import Naming
from marey.tree import Tree

UNSURE = 0.3
"""Margin (log ratio) below which a joint of the tree may well be another."""


def naming_finding(naming: Naming) -> Finding:
    """Return what a figure looks like, and which doubts there are."""
    unsure = naming.sure < UNSURE
    axis = "xyz"[int(np.abs(naming.up).argmax())]
    sign = "-" if naming.up.sum() < 0 else ""
    lies = "" if naming.up[2] > 0 else f" lying along {sign}{axis}: check the up axis"
    doubt = "; which side is left is not certain" if unsure else ""
    return Finding(
        "named-by-looks",
        "skeleton",
        "warning" if unsure or lies else "info",
        f"looks like a {naming.kind}{lies}; its bodies are named so{doubt}",
        value=naming.sure,
    )


def tree_findings(tree: Tree, bodies: Bodies) -> Iterator[Finding]:
    """Return the joints of the tree that may well be others."""
    for body in np.flatnonzero(tree.margin < UNSURE):
        yield Finding(
            "tree-unsure",
            "tree",
            "warning",
            f"hangs from {bodies.names[tree.parent[body]]}, but another body fits "
            "almost as well: look at it, or give the tree",
            subject=bodies.names[body],
            value=float(tree.margin[body]),
        )


def loop_findings(joints: JointFits, tree: Tree, bodies: Bodies) -> Iterator[Finding]:
    """Return the joints that the tree leaves out, with their place."""
    for loop in tree.loops:
        a, b = (bodies.names[body] for body in joints.pair[loop.pair])
        ends = joints.center_a[loop.pair], joints.center_b[loop.pair]
        if loop.center_a is not None and loop.center_b is not None:
            ends = np.array(loop.center_a), np.array(loop.center_b)
        where = " and ".join(
            f"{1e3 * np.linalg.norm(x):.0f} mm from {name} at "
            f"({', '.join(f'{1e3 * v:.0f}' for v in x)})"
            for name, x in zip((a, b), ends, strict=True)
        )
        gap = float(joints.residual[loop.pair])
        message = (
            f"closes a loop that the tree leaves open: a joint {where}, with a gap of "
            f"{1e3 * gap:.1f} mm"
        )
        if np.isfinite(loop.first) or np.isfinite(loop.last):
            message = (
                f"linked from {loop.first:.2f} to {loop.last:.2f} s only: a "
                f"{loop.kind or 'joint'} link {where}"
            )
        yield Finding("loop", "tree", "info", message, subject=f"{a}-{b}", value=gap)


def joint_table(joints: JointFits, tree: Tree, bodies: Bodies) -> Table:
    """Return the joints of the tree: kinds, gaps, doubts and margins."""
    rows = []
    for body in np.flatnonzero(tree.edge >= 0):
        edge = int(tree.edge[body])
        spread = np.sqrt(np.trace(joints.covariance[edge, :3, :3]))
        rows.append(
            (
                bodies.names[body],
                bodies.names[tree.parent[body]],
                joints.kind[edge],
                float(1e3 * joints.residual[edge]),
                float(1e3 * spread),
                float(tree.margin[body]),
            )
        )
    columns = ("joint", "parent", "kind", "residual mm", "centre ± mm", "margin")
    return Table(columns, tuple(rows))
