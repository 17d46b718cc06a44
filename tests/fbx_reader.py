"""Read an FBX with ufbx, a reader that nobody here wrote; run in a process of its own.

The binding of ufbx frees memory that it still uses: every object that it returns is
kept until the process ends, which it does at once.

Usage: fbx_reader.py FILE OUT.npz
"""

import gc
import os
import sys

import numpy as np
import ufbx
from scipy.spatial.transform import Rotation

KEPT = []


def keep(thing):
    """Return a thing that lives as long as the process."""
    KEPT.append(thing)
    return thing


def items(things):
    """Return the items of a list of ufbx."""
    return [keep(things[i]) for i in range(len(keep(things)))]


def matrix(m):
    """Return a transform of ufbx as a matrix."""
    columns = [(c.x, c.y, c.z) for c in (m.c0, m.c1, m.c2, m.c3)]
    return np.vstack([np.array(columns).T, [0.0, 0.0, 0.0, 1.0]])


def pose(transform):
    """Return translation, rotation and scale of ufbx as a matrix."""
    q, t, s = transform.rotation, transform.translation, transform.scale
    T = np.eye(4)
    T[:3, :3] = Rotation.from_quat([q.x, q.y, q.z, q.w]).as_matrix() * [s.x, s.y, s.z]
    T[:3, 3] = t.x, t.y, t.z
    return T


def parent_name(node):
    """Return the name of a node's parent; empty without one."""
    parent = keep(node.parent)
    return parent.name if parent else ""


def world_poses(anim, nodes, seconds):
    """Return the pose of each node in the world; parents come first."""
    T = {}
    for node in nodes:
        local = keep(ufbx.evaluate_transform(anim, node, seconds))
        above = T.get(parent_name(node), np.eye(4))
        T[node.name] = above @ pose(local)
    return T


def skinned(scene, poses):
    """Return the vertices of the first mesh in every frame, by its clusters."""
    mesh, skin = items(scene.meshes)[0], items(scene.skin_deformers)[0]
    rest = np.array([(v.x, v.y, v.z) for v in items(mesh.vertices)])
    points = np.zeros((len(poses), len(rest), 3))
    for cluster in items(skin.clusters):
        vertex = np.array(items(cluster.vertices))
        weight = np.array(items(cluster.weights))
        local = matrix(keep(cluster.geometry_to_bone))
        name = keep(cluster.bone_node).name
        own = rest[vertex] @ local[:3, :3].T + local[:3, 3]
        for frame, T in enumerate(poses):
            bone = T[name]
            moved = own @ bone[:3, :3].T + bone[:3, 3]
            points[frame, vertex] += weight[:, None] * moved
    return points


def main(path, out):
    gc.disable()
    scene = keep(ufbx.load_file(path))
    settings, metadata = keep(scene.settings), keep(scene.metadata)
    nodes = [node for node in items(scene.nodes) if node.name]
    rate = settings.frames_per_second
    stacks = items(scene.anim_stacks)
    result = {
        "names": [node.name for node in nodes],
        "parents": [parent_name(node) for node in nodes],
        "rate": rate,
        "unit": settings.unit_meters,
        "up": keep(keep(settings.axes).up).name,
        "warnings": [warning.description for warning in items(metadata.warnings)],
        "stacks": [stack.name for stack in stacks],
    }
    for number, stack in enumerate(stacks):
        anim = keep(stack.anim)
        n_frames = round((stack.time_end - stack.time_begin) * rate) + 1
        poses = [world_poses(anim, nodes, f / rate) for f in range(n_frames)]
        result[f"T{number}"] = [[T[name] for name in result["names"]] for T in poses]
        if number == 0:
            result["vertices"] = skinned(scene, poses)
    np.savez(out, **result)
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
