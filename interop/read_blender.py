"""Import a scene into Blender, and save where its joints and vertices are.

Runs in a virtual environment of its own, which has bpy:

    python read_blender.py scene.glb rate frames out.npz [picture.png] [--old]

The archive has, for every armature, `<name>/names`, `<name>/joints` (frame, joint, 3)
and `<name>/vertices` (frame, vertex, 3) of the mesh that it bends: metres, +Z up. The
picture shows the frame in the middle. --old: the older of Blender's two FBX importers.
"""

import sys
from pathlib import Path

import bpy
import numpy as np
from mathutils import Vector

IMPORTERS = {
    ".glb": lambda path: bpy.ops.import_scene.gltf(filepath=path),
    ".gltf": lambda path: bpy.ops.import_scene.gltf(filepath=path),
    ".usda": lambda path: bpy.ops.wm.usd_import(filepath=path),
    ".usdc": lambda path: bpy.ops.wm.usd_import(filepath=path),
    ".fbx": lambda path: bpy.ops.wm.fbx_import(filepath=path),
    "--old": lambda path: import_old_fbx(path),
}


def import_old_fbx(path):
    """Import an FBX with the importer that is an add-on."""
    import addon_utils  # there once bpy is

    addon_utils.enable("io_scene_fbx")
    bpy.ops.import_scene.fbx(filepath=path)


def open_scene(path, rate, importer):
    """Start from nothing, at the rate of the motion, and import a file."""
    bpy.ops.wm.read_factory_settings(use_empty=True)
    bpy.context.scene.render.fps = round(rate)
    bpy.context.scene.render.fps_base = round(rate) / rate
    IMPORTERS[importer](str(path))


def first_frame(path):
    """Return the frame of the first pose: USD counts from its own first time code."""
    return 1 if Path(path).suffix == ".fbx" else 0


def bodies():
    """Return each armature with the mesh that it bends."""
    for thing in bpy.data.objects:
        if thing.type == "ARMATURE":
            for body in bpy.data.objects:
                bent = [m for m in body.modifiers if m.type == "ARMATURE"]
                if body.type == "MESH" and any(m.object is thing for m in bent):
                    yield thing, body


def sample(frames, first):
    """Return joints and vertices of every armature in every frame."""
    scene, arrays = bpy.context.scene, {}
    pairs = list(bodies())
    for armature, _ in pairs:
        arrays[f"{armature.name}/names"] = [bone.name for bone in armature.pose.bones]
        arrays[f"{armature.name}/joints"] = []
        arrays[f"{armature.name}/vertices"] = []
    for frame in range(frames):
        scene.frame_set(first + frame)
        graph = bpy.context.evaluated_depsgraph_get()
        for armature, body in pairs:
            posed = armature.evaluated_get(graph)
            T = np.array(posed.matrix_world)
            heads = np.array([bone.head for bone in posed.pose.bones])
            arrays[f"{armature.name}/joints"].append(heads @ T[:3, :3].T + T[:3, 3])
            bent = body.evaluated_get(graph)
            points = np.zeros(3 * len(bent.data.vertices))
            bent.data.vertices.foreach_get("co", points)
            T = np.array(bent.matrix_world)
            points = points.reshape(-1, 3) @ T[:3, :3].T + T[:3, 3]
            arrays[f"{armature.name}/vertices"].append(points)
    return {name: np.array(values) for name, values in arrays.items()}


def render(path, frame, points):
    """Draw one frame with Cycles, seen from the front left."""
    scene = bpy.context.scene
    scene.frame_set(frame)
    middle = (points.min(axis=0) + points.max(axis=0)) / 2.0
    size = float(np.ptp(points, axis=0).max())
    camera = bpy.data.objects.new("camera", bpy.data.cameras.new("camera"))
    camera.location = Vector(middle) + Vector((1.3, 1.1, 0.35)) * size
    toward = Vector(middle) - camera.location
    camera.rotation_euler = toward.to_track_quat("-Z", "Y").to_euler()
    sun = bpy.data.objects.new("sun", bpy.data.lights.new("sun", "SUN"))
    sun.data.energy = 2.0
    sun.rotation_euler = (0.7, 0.3, 1.2)
    world = bpy.data.worlds.new("world")
    world.use_nodes = True
    world.node_tree.nodes["Background"].inputs[0].default_value = (0.9, 0.9, 0.9, 1.0)
    world.node_tree.nodes["Background"].inputs[1].default_value = 0.35
    scene.world = world
    for thing in (camera, sun):
        scene.collection.objects.link(thing)
    scene.camera = camera
    for body in bpy.data.objects:
        if body.type == "MESH" and not body.modifiers:
            body.hide_render = body.name.startswith("Icosphere")  # shapes of bones
    scene.render.engine = "CYCLES"
    scene.cycles.samples = 24
    scene.render.resolution_x, scene.render.resolution_y = 640, 640
    scene.render.filepath = str(path)
    bpy.ops.render.render(write_still=True)


def main(path, rate, frames, target, *others):
    """Import, sample, save, and draw if asked to."""
    rate, frames = float(rate), int(frames)
    importer = "--old" if "--old" in others else Path(path).suffix
    picture = next((name for name in others if name != "--old"), None)
    open_scene(path, rate, importer)
    first = first_frame(path)
    arrays = sample(frames, first)
    np.savez(target, **arrays)
    if picture:
        middle = frames // 2
        shown = [a[middle] for name, a in arrays.items() if name.endswith("vertices")]
        render(picture, first + middle, np.concatenate(shown))


if __name__ == "__main__":
    main(*sys.argv[1:])
