"""Takes being solved, with what was worked out so far kept for the next edit."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial

import numpy as np

from marey.cleaning import clean, find_exchanges, rescale, unexchanged, without_idle
from marey.editing.apply import Hand, Memory, walked
from marey.editing.assignment import layout_of
from marey.editing.joints import shaped
from marey.editing.mask_frames import without_bad
from marey.editing.plan import Plan, Step, planned
from marey.editing.rename import called
from marey.edits import Edit
from marey.errors import OptionError
from marey.joints import rigid_pair
from marey.motion import Motion
from marey.pipeline.options import SolveOptions
from marey.pipeline.progress import Clock
from marey.pipeline.report import (
    early_findings,
    ground_by_hand,
    joint_table,
    pose_table,
)
from marey.pipeline.stages import Fitted, fit_all, mended_fit
from marey.pipeline.subjects import Figure, calibrated, figures_of, posed
from marey.report import Finding, Report
from marey.rig import is_nameless
from marey.segmentation import segment
from marey.solution import Solution, Subject
from marey.take import Take
from marey.tree import Tree


@dataclass(frozen=True, slots=True, eq=False)
class _Base:
    """A fit without edits of bodies or tree."""

    first: Fitted
    """Of the takes as they were cleaned."""

    fitted: Fitted
    """Of the takes as the joints have mended them."""


class Bench:
    """Takes and how to solve them; edits are tried on what is known already."""

    def __init__(
        self,
        takes: tuple[Take, ...],
        chosen: SolveOptions,
        *,
        cleaned: bool = False,
        settled: Sequence[Edit] = (),
    ) -> None:
        """Lay takes out.

        Args:
            takes: The recordings.
            chosen: How to solve them; its edits are not read.
            cleaned: Whether they were cleaned, mended and scaled before.
            settled: Edits of frames marked as bad that the takes have behind them.
        """
        self._takes = takes
        self._settled = settled
        self._chosen = chosen
        self._work = chosen
        if cleaned:
            self._work = replace(chosen, clean=False, field=False, rigid_pair=None)
        self._root: tuple[Edit, ...] = ()
        if chosen.root:
            self._root = (Edit(do="reroot", body=chosen.root),)
        self._memory = Memory()
        self._looks: dict[tuple[Edit, ...], Mapping[str, str]] = {}

    def solved(self, edits: tuple[Edit, ...], clock: Clock) -> Solution:
        """Return the solution with these edits.

        Only what depends on edits that were not there before is worked out anew.

        Raises:
            OptionError: If an edit does not fit, with its number.
            DataError: If there is nothing left to solve.
        """
        base, plan, fitted = self._fitted((*self._root, *edits), clock)
        key = _key(edits, plan)
        figures = self._memory.get(
            "figures", key, partial(self._figures, fitted, clock)
        )
        _, steps = walked(plan, fitted.start, _roots(base.fitted), fitted.hips)
        names = dict(zip(plan.layout.names, fitted.bodies[0].names, strict=True))
        steps = tuple(
            replace(step, bodies=tuple(names[body] for body in step.bodies))
            for step in steps
        )
        set_so = tuple((step.edit, step.bodies, step.joint) for step in steps)
        subjects, met = self._memory.get(
            "posed",
            (key, set_so, plan.ground if self._work.contacts else None),
            partial(self._posed, fitted, figures, steps, plan.ground, clock),
        )
        homes = self._homes(fitted)
        fitted = _hung(fitted, steps)
        solution = self._solution(edits, fitted, plan, subjects, met, clock)
        shown = {names.get(inside, inside): s for inside, s in plan.names.items()}
        return _with_tables(called(solution, shown, homes, plan.tree))

    def _fitted(
        self, edits: tuple[Edit, ...], clock: Clock
    ) -> tuple[_Base, Plan, Fitted]:
        """Return the fit without edits, what the edits ask, and the fit with them."""
        bad = tuple(edit for edit in edits if edit.do == "bad")
        base: _Base = self._memory.get("base", bad, partial(self._base, edits, clock))
        plan = self._plan(edits, base.fitted, clock)
        if plan.as_found:
            return base, plan, base.fitted
        make = partial(self._by_hand, plan, base, clock)
        return base, plan, self._memory.get("fitted", _key(edits, plan), make)

    def _base(self, edits: Sequence[Edit], clock: Clock) -> _Base:
        with clock.stage("clean"):
            mine = edits[len(self._root) :]
            takes = without_bad(self._takes, mine, self._settled)
            if self._work.clean:
                takes = tuple(clean(take) for take in takes)
                takes = unexchanged(takes, find_exchanges(takes))
            takes = without_idle(to_scale(takes, self._work))
        first = fit_all(takes, self._work, clock)
        return _Base(first, mended_fit(first, self._work, clock))

    def _plan(self, edits: tuple[Edit, ...], fitted: Fitted, clock: Clock) -> Plan:
        found = fitted.found.bodies
        known = self._work.tree or found[0].parents
        return planned(
            edits,
            found,
            {child: parent for child, parent in known.items() if parent},
            first=1 - len(self._root),
            known=self._work.skeleton is not None,
            looks=lambda count: self._called(edits[:count], fitted, clock),
        )

    def _called(
        self, edits: tuple[Edit, ...], base: Fitted, clock: Clock
    ) -> Mapping[str, str]:
        """Return what bodies are called after some edits, if they had no names."""
        if not any(map(is_nameless, base.found.bodies[0].names)):
            return {}
        if edits not in self._looks:
            _, plan, fitted = self._fitted(edits, clock)
            names = fitted.bodies[0].names
            self._looks[edits] = dict(zip(plan.layout.names, names, strict=True))
        return self._looks[edits]

    def _by_hand(self, plan: Plan, base: _Base, clock: Clock) -> Fitted:
        """Return the fit with bodies and tree as the user has them."""
        found = base.first.found
        members = layout_of(found.bodies, {}).members
        if members != plan.found.members:
            found = base.fitted.found
        whole = base.fitted
        shown = zip(whole.found.bodies[0].names, whole.bodies[0].names, strict=True)
        hand = Hand(
            plan, found, dict(shown), _roots(whole), whole.namings, self._memory
        )
        first = fit_all(base.first.takes, self._work, clock, hand)
        return mended_fit(first, self._work, clock, hand)

    def _figures(self, fitted: Fitted, clock: Clock) -> list[Figure]:
        with clock.stage("skeleton"):
            figures = figures_of(fitted, self._work)
        with clock.stage("calibrate"):
            return calibrated(figures, fitted, self._work)

    def _posed(
        self,
        fitted: Fitted,
        figures: list[Figure],
        steps: Sequence[Step],
        ground: Edit | None,
        clock: Clock,
    ) -> tuple[tuple[Subject, ...], tuple[Finding, ...]]:
        with clock.stage("pose"):
            free = replace(self._work, contacts=False)

            def poses(figure: Figure) -> Sequence[Motion]:
                return posed([figure], fitted.takes, free)[0][0].motions

            figures = shaped(figures, self._homes(fitted), steps, poses)
            return posed(figures, fitted.takes, self._work, ground)

    def _homes(self, fitted: Fitted) -> dict[str, int]:
        """Return the number of the figure that each body is in."""
        tree, names = fitted.tree, fitted.bodies[0].names
        if self._work.skeleton is not None:
            return dict.fromkeys(names, 0)
        roots = tree.roots.tolist()
        return {name: roots.index(_root(tree, i)) for i, name in enumerate(names)}

    def _solution(
        self,
        edits: tuple[Edit, ...],
        fitted: Fitted,
        plan: Plan,
        subjects: tuple[Subject, ...],
        met: tuple[Finding, ...],
        clock: Clock,
    ) -> Solution:
        findings = (
            *(finding for take in fitted.takes for finding in take.source.findings),
            *fitted.findings(),
            *met,
        )
        findings = (*findings, *early_findings(plan.tree))
        if plan.ground is not None:
            findings = ground_by_hand(findings, plan.ground)
        options = asdict(replace(self._chosen, edits=()))
        options["edits"] = tuple(edit.record() for edit in edits)
        return Solution(
            takes=fitted.takes,
            bodies=fitted.bodies,
            joints=fitted.joints,
            tree=fitted.tree,
            subjects=subjects,
            report=Report(findings=findings, seconds=clock.seconds),
            options=options,
        )


def _key(edits: Sequence[Edit], plan: Plan) -> tuple[object, ...]:
    """Return what bodies, joints and tree follow from."""
    bad = tuple(edit for edit in edits if edit.do == "bad")
    return bad, () if plan.as_found else plan.fit_key


def _hung(fitted: Fitted, steps: Sequence[Step]) -> Fitted:
    """Return the fit with its trees hung from where the user says."""
    tree, names = fitted.tree, fitted.bodies[0].names
    for step in (step for step in steps if step.edit.do == "reroot"):
        tree = tree.reroot(names.index(step.bodies[0]))
    return replace(fitted, tree=tree)


def _with_tables(solution: Solution) -> Solution:
    joints = joint_table(solution.joints, solution.tree, solution.bodies[0])
    poses = pose_table(solution.subjects, solution.takes)
    report = replace(solution.report, tables={"joints": joints, "pose": poses})
    return replace(solution, report=report)


def to_scale(takes: tuple[Take, ...], chosen: SolveOptions) -> tuple[Take, ...]:
    """Return the takes in true lengths, when two sensors on a stick tell them."""
    if chosen.rigid_pair is None:
        return takes
    a, b, distance = chosen.rigid_pair
    found = [_scale(take, a, b, distance) for take in takes]
    factor = float(np.mean(found))
    return tuple(rescale(take, factor) for take in takes)


def _scale(take: Take, a: str, b: str, distance: float) -> float:
    """Return the factor to true lengths by two sensors that are so far apart."""
    names = take.sensor_names
    for name in (a, b):
        if name not in names:
            needed = f"one of {', '.join(names)}"
            raise OptionError("rigid_pair", found=name, needed=needed)
    bodies = segment(take, method="sensors")
    pair = names.index(a), names.index(b)
    return rigid_pair(bodies, pair, distance=distance).scale


def _root(tree: Tree, body: int) -> int:
    """Return the root of a body's tree."""
    while tree.parent[body] >= 0:
        body = int(tree.parent[body])
    return body


def _roots(fitted: Fitted) -> tuple[str, ...]:
    """Return what the trees hang from, the largest tree's last."""
    tree, names = fitted.tree, fitted.found.bodies[0].names
    home = [_root(tree, body) for body in range(len(names))]
    return tuple(names[root] for root in sorted(tree.roots, key=home.count))
