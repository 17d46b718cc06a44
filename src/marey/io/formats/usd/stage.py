"""The stage of a USD scene: figures with skeleton, mesh and animations; markers."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

import numpy as np

from marey.errors import import_extra
from marey.io.scene import Scene, SceneFigure, SceneTake
from marey.io.scene.body_mesh import INFLUENCES
from marey.io.scene.figures import MARKER_COLOR, MARKER_RADIUS_M
from marey.io.text.names import make_unique
from marey.io.text.rotations import hold_last_or_default
from marey.io.units_axes import FileWorld, metres_per_unit, rotation_to_z_up
from marey.motion import Motion
from marey.numerics import Array, Float
from marey.skeleton import Skeleton


@dataclass(frozen=True, slots=True, eq=False)
class _Usd:
    """The parts of OpenUSD that a scene needs, and the unit and axes of the file."""

    Gf: ModuleType
    Sdf: ModuleType
    Tf: ModuleType
    Usd: ModuleType
    UsdGeom: ModuleType
    UsdShade: ModuleType
    UsdSkel: ModuleType
    Vt: ModuleType
    world: FileWorld

    def vectors(self, values: Float[Array, "item 3"]) -> Any:
        """Return an array of float3."""
        return self.Vt.Vec3fArray.FromNumpy(np.ascontiguousarray(values, np.float32))

    def identifiers(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return unique names that a USD path can have: letters, digits and "_"."""
        return make_unique([self.Tf.MakeValidIdentifier(name) for name in names])


def joint_identifiers(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of joints as a stage has them."""
    return _import_modules(FileWorld("m", "z")).identifiers(names)


def build_stage(scene: Scene, world: FileWorld) -> Any:
    """Return the stage of a scene, in memory.

    Raises:
        MissingExtraError: If usd-core is not installed.
    """
    usd = _import_modules(world)
    stage = usd.Usd.Stage.CreateInMemory()
    usd.UsdGeom.SetStageUpAxis(stage, world.up.upper())
    usd.UsdGeom.SetStageMetersPerUnit(stage, metres_per_unit(world.unit))
    top = usd.UsdGeom.Xform.Define(stage, "/World").GetPrim()
    stage.SetDefaultPrim(top)
    names = usd.identifiers([figure.name for figure in scene.figures])
    for name, figure in zip(names, scene.figures, strict=True):
        _add_figure(usd, stage, f"/World/{name}", figure)
    takes = usd.identifiers([take.name for take in scene.takes])
    choices = top.GetVariantSets().AddVariantSet("take") if len(takes) > 1 else None
    _set_clock(stage, scene.takes)
    for number, take in enumerate(scene.takes):
        step = scene.takes[0].rate / take.rate
        animations = [
            _add_animation(
                usd, stage, f"/World/{name}/{takes[number]}", one.motions[number], step
            )
            for name, one in zip(names, scene.figures, strict=True)
        ]
        with _variant(choices, takes[number]):
            for name, animation in zip(names, animations, strict=True):
                skeleton = stage.GetPrimAtPath(f"/World/{name}/Skeleton")
                binding = usd.UsdSkel.BindingAPI(skeleton)
                binding.CreateAnimationSourceRel().SetTargets([animation])
            _add_markers(usd, stage, take, step)
    if choices:
        choices.SetVariantSelection(takes[0])
    return stage


def stage_bytes(stage: Any, suffix: str) -> bytes:
    """Return the bytes of a stage as ".usda" or ".usdc"."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"scene{suffix}"
        stage.GetRootLayer().Export(str(path))
        return path.read_bytes()


def import_usd() -> Any:
    """Return UsdSkel, which is slow to import and optional.

    Raises:
        MissingExtraError: If usd-core is not installed.
    """
    return import_extra("pxr.UsdSkel", "usd", "usd-core")


def _import_modules(world: FileWorld) -> _Usd:
    UsdSkel = import_usd()
    from pxr import Gf, Sdf, Tf, Usd, UsdGeom, UsdShade, Vt

    return _Usd(Gf, Sdf, Tf, Usd, UsdGeom, UsdShade, UsdSkel, Vt, world)


def _set_clock(stage: Any, takes: Sequence[SceneTake]) -> None:
    """Let one time code be one frame of the first take; frame 0 is at time code 0."""
    if not takes:
        return
    rate = takes[0].rate
    last = max(max(take.n_frames - 1, 0) * rate / take.rate for take in takes)
    stage.SetStartTimeCode(0.0)
    stage.SetEndTimeCode(last)
    stage.SetTimeCodesPerSecond(rate)
    stage.SetFramesPerSecond(rate)


def _variant(choices: Any, name: str) -> AbstractContextManager[Any]:
    """Return the context in which what is authored belongs to one take, of several."""
    if choices is None:
        return nullcontext()
    choices.AddVariant(name)
    choices.SetVariantSelection(name)
    context: AbstractContextManager[Any] = choices.GetVariantEditContext()
    return context


def _add_figure(usd: _Usd, stage: Any, path: str, figure: SceneFigure) -> None:
    """Add a SkelRoot with the skeleton at rest, and the mesh that it bends."""
    root = usd.UsdSkel.Root.Define(stage, path)
    rest = usd.world.points(figure.skeleton.rest()[:, :3, 3])
    offset = usd.world.points(figure.skeleton.offset)
    skeleton = usd.UsdSkel.Skeleton.Define(stage, f"{path}/Skeleton")
    skeleton.CreateJointsAttr(_joint_paths(usd, figure.skeleton))
    skeleton.CreateJointNamesAttr(figure.skeleton.names)
    skeleton.CreateBindTransformsAttr(_translations(usd, rest))
    skeleton.CreateRestTransformsAttr(_translations(usd, offset))
    usd.UsdSkel.BindingAPI.Apply(skeleton.GetPrim())
    mesh = _add_mesh(usd, stage, f"{path}/Body", figure)
    binding = usd.UsdSkel.BindingAPI.Apply(mesh.GetPrim())
    binding.CreateSkeletonRel().SetTargets([skeleton.GetPath()])
    binding.CreateGeomBindTransformAttr(usd.Gf.Matrix4d(1.0))
    body = figure.mesh
    joints = binding.CreateJointIndicesPrimvar(False, INFLUENCES)
    joints.Set(usd.Vt.IntArray.FromNumpy(body.joint.astype(np.int32).reshape(-1)))
    weights = binding.CreateJointWeightsPrimvar(False, INFLUENCES)
    weights.Set(usd.Vt.FloatArray.FromNumpy(body.weight.astype(np.float32).reshape(-1)))
    root.CreateExtentAttr(usd.vectors(_extent(usd, figure)))


def _add_mesh(usd: _Usd, stage: Any, path: str, figure: SceneFigure) -> Any:
    body, mesh = figure.mesh, usd.UsdGeom.Mesh.Define(stage, path)
    points = usd.world.points(body.vertices)
    sides = np.full(len(body.faces), 3, dtype=np.int32)
    mesh.CreatePointsAttr(usd.vectors(points))
    mesh.CreateFaceVertexCountsAttr(usd.Vt.IntArray.FromNumpy(sides))
    indices = body.faces.astype(np.int32).reshape(-1)
    mesh.CreateFaceVertexIndicesAttr(usd.Vt.IntArray.FromNumpy(indices))
    mesh.CreateNormalsAttr(usd.vectors(body.normals @ rotation_to_z_up(usd.world.up)))
    mesh.SetNormalsInterpolation(usd.UsdGeom.Tokens.vertex)
    mesh.CreateSubdivisionSchemeAttr(usd.UsdGeom.Tokens.none)
    mesh.CreateDisplayColorAttr([figure.color])
    mesh.CreateExtentAttr(usd.vectors(_bounds(points)))
    material = _add_material(usd, stage, f"{path}Material", figure.color)
    usd.UsdShade.MaterialBindingAPI.Apply(mesh.GetPrim()).Bind(material)
    return mesh


def _add_material(
    usd: _Usd, stage: Any, path: str, color: tuple[float, float, float]
) -> Any:
    """Add a plain material of one colour."""
    material = usd.UsdShade.Material.Define(stage, path)
    shader = usd.UsdShade.Shader.Define(stage, f"{path}/Surface")
    shader.CreateIdAttr("UsdPreviewSurface")
    kind = usd.Sdf.ValueTypeNames.Color3f
    shader.CreateInput("diffuseColor", kind).Set(usd.Gf.Vec3f(*color))
    output = material.CreateSurfaceOutput()
    output.ConnectToSource(shader.ConnectableAPI(), "surface")
    return material


def _add_animation(
    usd: _Usd, stage: Any, path: str, motion: Motion, step: float
) -> str:
    """Add the animation of a figure in one take and return its path."""
    animation = usd.UsdSkel.Animation.Define(stage, path)
    animation.CreateJointsAttr(_joint_paths(usd, motion.skeleton))
    ones = np.ones((motion.skeleton.n_joints, 3), np.float16)
    animation.CreateScalesAttr(usd.Vt.Vec3hArray.FromNumpy(ones))
    translations = animation.CreateTranslationsAttr()
    rotations = animation.CreateRotationsAttr()
    wxyz = usd.world.rotations(motion.wxyz)
    xyzw = np.roll(wxyz, -1, axis=-1).astype(np.float32)
    offset = usd.world.points(motion.skeleton.offset)
    position = usd.world.points(motion.T_world_root[:, :3, 3])
    for frame in range(motion.n_frames):
        offset[0] = position[frame]
        translations.Set(usd.vectors(offset), frame * step)
        rotations.Set(usd.Vt.QuatfArray.FromNumpy(xyzw[frame]), frame * step)
    return path


def _add_markers(usd: _Usd, stage: Any, take: SceneTake, step: float) -> None:
    """Add a ball for every marker of a take, invisible where it was not seen."""
    labels = take.markers.labels
    if labels:
        usd.UsdGeom.Xform.Define(stage, "/World/Markers")
    radius = MARKER_RADIUS_M / metres_per_unit(usd.world.unit)
    for number, name in enumerate(usd.identifiers(labels)):
        ball = usd.UsdGeom.Sphere.Define(stage, f"/World/Markers/{name}")
        ball.CreateRadiusAttr(radius)
        ball.CreateExtentAttr(usd.vectors(np.array([[-radius] * 3, [radius] * 3])))
        ball.CreateDisplayColorAttr([MARKER_COLOR])
        track = take.markers.points[:, number]
        points = usd.world.points(hold_last_or_default(track, np.zeros(3)))
        seen = np.isfinite(track).all(axis=1)
        move, visibility = ball.AddTranslateOp(), ball.CreateVisibilityAttr()
        for frame, point in enumerate(points):
            move.Set(usd.Gf.Vec3d(*point.tolist()), frame * step)
        for frame in np.flatnonzero(np.diff(seen, prepend=not seen[:1].all())).tolist():
            visibility.Set("inherited" if seen[frame] else "invisible", frame * step)


def _joint_paths(usd: _Usd, skeleton: Skeleton) -> list[str]:
    """Return the path of every joint from the root: "Hips/Spine/Chest"."""
    paths: list[str] = []
    names = usd.identifiers(skeleton.names)
    for name, parent in zip(names, skeleton.parent.tolist(), strict=True):
        paths.append(name if parent < 0 else f"{paths[parent]}/{name}")
    return paths


def _translations(usd: _Usd, points: Float[Array, "joint 3"]) -> Any:
    """Return matrices that move; USD has the translation in the last row."""
    matrix = np.tile(np.eye(4), (len(points), 1, 1))
    matrix[:, 3, :3] = points
    return usd.Vt.Matrix4dArray.FromNumpy(matrix)


def _extent(usd: _Usd, figure: SceneFigure) -> Float[Array, "2 3"]:
    """Return the corners of the box that a figure and its mesh stay in, as written."""
    rest = figure.skeleton.rest()[:, :3, 3]
    own = rest[figure.mesh.joint[:, 0]]
    flesh = np.linalg.norm(figure.mesh.vertices - own, axis=1).max()
    poses = [motion.T_world_joint()[..., :3, 3] for motion in figure.motions]
    points = np.concatenate([rest, *(pose.reshape(-1, 3) for pose in poses)])
    return _bounds(
        usd.world.points(_bounds(points) + flesh * np.array([[-1.0], [1.0]]))
    )


def _bounds(points: Float[Array, "point 3"]) -> Float[Array, "2 3"]:
    """Return the least and the greatest coordinates of points, in their unit."""
    return np.stack([points.min(axis=0), points.max(axis=0)])
