"""Write files, open them with the programs they are for, and print how far they agree.

    python interop/check.py blender-python [motion.bvh] [--frames n] [--pictures folder]

`make interop` sets everything up and runs it. Each reader gets the same motion; the
table says how far its joints and skinned vertices are from marey's, at all frames. The
exit code says whether all are within 0.01 mm, and all validators content.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import marey
from marey.io.scene import build_body_mesh
from marey.io.units_axes import points_from_file

HERE = Path(__file__).parent
TESTS = HERE.parent / "tests"
sys.path += [str(TESTS), str(TESTS / "contracts")]
MAX_ERROR_MM = 0.01
NODE = shutil.which("node", path=Path(sys.executable).parent) or "node"


def read_three(path, motion):
    """Joints and vertices by three's GLTFLoader or FBXLoader."""
    shown = run(NODE, HERE / "read_three.mjs", path, motion.rate, motion.n_frames)
    (figure,) = json.loads(shown)["skinned"]
    order = [figure["names"].index(name) for name in motion.skeleton.names]
    joints, vertices = (np.array(figure[what]) for what in ("joints", "vertices"))
    unit = "cm" if path.suffix == ".fbx" else "m"
    places = (joints[:, order], vertices)
    return tuple(points_from_file(place, unit, "y") for place in places)


def read_ufbx(path, motion):
    """Joints and vertices by ufbx, in a process of its own."""
    target = path.with_suffix(".ufbx.npz")
    run(sys.executable, TESTS / "fbx_reader.py", path, target)
    found = np.load(target)
    order = [found["names"].tolist().index(name) for name in motion.skeleton.names]
    places = (found["T0"][:, order][..., :3, 3].copy(), found["vertices"])
    return tuple(points_from_file(place, "cm", "y") for place in places)


def read_mujoco(path, motion):
    """Joints by MuJoCo, of MJCF or URDF."""
    import multibodies

    names = motion.skeleton.names
    if path.suffix == ".urdf":
        return multibodies.mujoco_urdf_positions(path, names), None
    poses = np.load(path.with_suffix(".qpos.npz"))["qpos"]
    model = multibodies.mujoco_model(path)
    return multibodies.mujoco_positions(model, poses, names), None


def read_yourdfpy(path, motion):
    """Joints by yourdfpy."""
    import multibodies

    return multibodies.yourdfpy_positions(path, motion.skeleton.names), None


def read_usdskel(path, motion):
    """Joints and vertices by the queries of OpenUSD."""
    from pxr import Usd, UsdGeom, UsdSkel, Vt

    stage = Usd.Stage.Open(str(path))
    root = stage.GetPrimAtPath("/World/figure")
    body = UsdGeom.Mesh(stage.GetPrimAtPath("/World/figure/Body"))
    cache = UsdSkel.Cache()
    cache.Populate(UsdSkel.Root(root), Usd.PrimDefaultPredicate)
    skel = cache.GetSkelQuery(UsdSkel.Skeleton(root.GetChild("Skeleton")))
    skinning = cache.GetSkinningQuery(body.GetPrim())
    joints, vertices = [], []
    for frame in range(motion.n_frames):
        joints.append(np.array(skel.ComputeJointSkelTransforms(frame))[:, 3, :3])
        points = Vt.Vec3fArray(body.GetPointsAttr().Get())
        moves = skel.ComputeSkinningTransforms(frame)
        skinning.ComputeSkinnedPoints(moves, points, frame)
        vertices.append(np.array(points))
    return np.array(joints), np.array(vertices)


def read_blender(python, pictures, *flags):
    """Return a reader of joints and vertices by Blender, in its own environment."""

    def read(path, motion):
        target = path.with_suffix(".npz")
        picture = [pictures / f"{path.name}{''.join(flags)}.png"] if pictures else []
        script, count = HERE / "read_blender.py", motion.n_frames
        run(python, script, path, motion.rate, count, target, *picture, *flags)
        found = np.load(target)
        (name,) = {key.rpartition("/")[0] for key in found.files}
        names = found[f"{name}/names"].tolist()
        order = [names.index(joint) for joint in motion.skeleton.names]
        return found[f"{name}/joints"][:, order], found[f"{name}/vertices"]

    return read


def run(*command):
    """Return what a program prints; its errors end the check."""
    done = subprocess.run([str(part) for part in command], capture_output=True)
    if done.returncode:
        sys.exit(done.stderr.decode() or done.stdout.decode())
    return done.stdout


def validate_gltf(path):
    """Print what the Khronos validator finds; return whether it is content."""
    (report,) = json.loads(run(NODE, HERE / "validate_gltf.mjs", path))
    counts = [report[f"num{what}"] for what in ("Errors", "Warnings", "Infos", "Hints")]
    found = "{} errors, {} warnings, {} infos, {} hints".format(*counts)
    print(f"| {path.name} | Khronos validator | {found} | |")
    return not any(counts[:2])


def validate_usd(path):
    """Print what UsdValidation finds; return whether it is content."""
    from pxr import Usd, UsdValidation

    registry = UsdValidation.ValidationRegistry()
    context = UsdValidation.ValidationContext(registry.GetOrLoadAllValidators())
    stage = Usd.Stage.Open(str(path))
    errors = context.Validate(stage)
    print(f"| {path.name} | UsdValidation | {len(errors)} errors | |")
    return not errors


def compare(path, name, read, motion):
    """Print how far a reader is from marey; return whether it is near enough."""
    T = motion.T_world_joint()
    joints, vertices = read(path, motion)
    errors = [np.abs(joints - T[..., :3, 3]).max()]
    if vertices is not None:
        mesh = build_body_mesh(motion.skeleton)
        skin = mesh.skin(motion.skeleton, T)
        if vertices.shape != skin.shape:
            skin = skin[:, mesh.faces.ravel()]
        errors.append(np.abs(vertices - skin).max())
    shown = [f"{1e3 * error:.6f}" for error in errors]
    print(f"| {path.name} | {name} | {' | '.join((*shown, '')[:2])} |", flush=True)
    return 1e3 * max(errors) < MAX_ERROR_MM


def main():
    """Write each format, and compare every reader with the motion itself."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("blender")
    parser.add_argument("motion", nargs="?")
    parser.add_argument("--frames", type=int, default=120)
    parser.add_argument("--pictures", type=Path)
    given = parser.parse_args()
    person = marey.synth.human(seed=0)
    motion = person.perform("walk", seconds=2.0, rate=30.0)
    if given.motion:
        motion = marey.read_motion(given.motion)
    motion = motion.cut(0, min(motion.n_frames, given.frames))
    blender = ("Blender", read_blender(given.blender, given.pictures))
    older = ("Blender, older", read_blender(given.blender, given.pictures, "--old"))
    three, usdskel = ("three", read_three), ("UsdSkel", read_usdskel)
    mujoco = ("MuJoCo", read_mujoco)
    readers = {
        ".glb": ([validate_gltf], [three, blender]),
        ".gltf": ([validate_gltf], [three]),
        ".usda": ([validate_usd], [usdskel]),
        ".usdc": ([validate_usd], [usdskel, blender]),
        ".fbx": ([], [("ufbx", read_ufbx), three, blender, older]),
        ".mjcf": ([], [mujoco]),
        ".urdf": ([], [mujoco, ("yourdfpy", read_yourdfpy)]),
    }
    print("| file | reader | joints mm | vertices mm |\n|---|---|---|---|")
    good = []
    with tempfile.TemporaryDirectory() as folder:
        for suffix, (validators, programs) in readers.items():
            path = Path(folder) / f"motion{suffix}"
            marey.write(motion, path)
            good += [validate(path) for validate in validators]
            good += [compare(path, *program, motion) for program in programs]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
