"""Write scenes, open them with the programs they are for, and print how far they agree.

    python interop/check.py blender-python [motion.bvh] [--frames n] [--pictures folder]

`make interop` sets everything up and runs it. Each reader gets the same motion; the
table says how far its joints and skinned vertices are from marey's, at all frames.
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
NODE = shutil.which("node", path=Path(sys.executable).parent) or "node"


def read_three(path, motion):
    """Joints and vertices by three's GLTFLoader."""
    shown = run(NODE, HERE / "read_three.mjs", path, motion.rate, motion.n_frames)
    (figure,) = json.loads(shown)["skinned"]
    places = (np.array(figure[what]) for what in ("joints", "vertices"))
    return tuple(points_from_file(place, "m", "y") for place in places)


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


def read_blender(python, pictures):
    """Return a reader of joints and vertices by Blender, in its own environment."""

    def read(path, motion):
        target = path.with_suffix(".npz")
        picture = [pictures / f"{path.name}.png"] if pictures else []
        script = HERE / "read_blender.py"
        run(python, script, path, motion.rate, motion.n_frames, target, *picture)
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
    """Print what the Khronos validator finds."""
    (report,) = json.loads(run(NODE, HERE / "validate_gltf.mjs", path))
    counts = (report[f"num{what}"] for what in ("Errors", "Warnings", "Infos", "Hints"))
    found = "{} errors, {} warnings, {} infos, {} hints".format(*counts)
    print(f"| {path.name} | Khronos validator | {found} | |")


def validate_usd(path):
    """Print what UsdValidation finds."""
    from pxr import Usd, UsdValidation

    registry = UsdValidation.ValidationRegistry()
    context = UsdValidation.ValidationContext(registry.GetOrLoadAllValidators())
    stage = Usd.Stage.Open(str(path))
    errors = context.Validate(stage)
    print(f"| {path.name} | UsdValidation | {len(errors)} errors | |")


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
    T = motion.T_world_joint()
    skin = build_body_mesh(motion.skeleton).skin(motion.skeleton, T)
    blender = ("Blender", read_blender(given.blender, given.pictures))
    readers = {
        ".glb": (validate_gltf, [("three GLTFLoader", read_three), blender]),
        ".gltf": (validate_gltf, [("three GLTFLoader", read_three)]),
        ".usda": (validate_usd, [("UsdSkel", read_usdskel)]),
        ".usdc": (validate_usd, [("UsdSkel", read_usdskel), blender]),
    }
    print("| file | reader | joints mm | vertices mm |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for suffix, (validate, programs) in readers.items():
            path = Path(folder) / f"motion{suffix}"
            marey.write(motion, path)
            validate(path)
            for name, read in programs:
                joints, vertices = read(path, motion)
                errors = (
                    np.abs(joints - T[..., :3, 3]).max(),
                    np.abs(vertices - skin).max(),
                )
                print(
                    f"| {path.name} | {name} | "
                    + " | ".join(f"{1e3 * e:.4f}" for e in errors)
                    + " |"
                )


if __name__ == "__main__":
    main()
