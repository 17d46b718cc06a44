# /// script
# requires-python = ">=3.10,<3.14"
# dependencies = ["mink==1.3.0", "qpsolvers[daqp]", "numpy"]
# ///
"""mink: one frame task per marker, solved as quadratic programs (DAQP).

As in its examples: tasks with targets, `solve_ik`, `integrate_inplace`. The time step
is 1, so that a velocity is the whole step; limits are off, as in the other programs.
"""

from collections.abc import Iterator
from importlib.metadata import version

import mink
import mujoco
import numpy as np
from peer import Answer, Problem, serve

FEW, FIRST_STEPS, DAMPING = 5, 60, 1e-9


def solve_ik(problem: Problem) -> Iterator[Answer]:
    """Yield the answers of one and of two iterations per frame."""
    model = mujoco.MjModel.from_xml_path(str(problem.folder / "figure.mjcf"))
    start = mujoco.MjData(model).qpos.copy()
    start[:3] = problem["offset"][0]
    labels = [str(label) for label in problem["labels"]]
    sites = [model.site(label).id for label in labels]
    tasks = [
        mink.FrameTask(label, "site", position_cost=1.0, orientation_cost=0.0)
        for label in labels
    ]
    configuration = mink.Configuration(model)

    def run(count: int, steps: int, found: "np.ndarray | None" = None) -> None:
        configuration.update(start)
        for f in range(count):
            for task, place in zip(tasks, problem.points[f], strict=True):
                task.set_target(mink.SE3.from_translation(place))
            for _ in range(FIRST_STEPS if f == 0 else steps):
                velocity = mink.solve_ik(
                    configuration, tasks, 1.0, "daqp", damping=DAMPING, limits=[]
                )
                configuration.integrate_inplace(velocity, 1.0)
            if found is not None:
                found[f] = configuration.data.site_xpos[sites]

    for steps in (1, 2):

        def markers(count: int, steps: int = steps) -> np.ndarray:
            found = np.empty((count, len(sites), 3))
            run(count, steps, found)
            return found

        yield problem.answer(
            f"mink {version('mink')}, {steps} iteration{'s' * (steps > 1)}",
            lambda count, steps=steps: run(count, steps),
            markers,
            problem.count(300, 60),
            FEW,
        )


if __name__ == "__main__":
    serve(ik=solve_ik)
