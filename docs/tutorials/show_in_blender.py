from pathlib import Path

import bpy

bpy.ops.wm.read_factory_settings(use_empty=True)
scene = bpy.context.scene
scene.render.fps = 60
bpy.ops.wm.fbx_import(filepath="kick.fbx")
bpy.ops.mesh.primitive_plane_add(size=20.0)

camera = bpy.data.objects.new("camera", bpy.data.cameras.new("camera"))
camera.location, camera.rotation_euler = (2.3, 2.3, 1.1), (1.52, 0.0, 2.356)
sun = bpy.data.objects.new("sun", bpy.data.lights.new("sun", "SUN"))
sun.data.energy, sun.rotation_euler = 3.0, (0.7, 0.3, 1.2)
for thing in (camera, sun):
    scene.collection.objects.link(thing)
scene.camera = camera
scene.world = bpy.data.worlds.new("world")
scene.world.color = (0.3, 0.3, 0.3)

scene.render.engine = "CYCLES"
scene.cycles.samples = 16
scene.render.resolution_x, scene.render.resolution_y = 480, 480
for frame in (32, 80, 151):
    scene.frame_set(frame)
    scene.render.filepath = str(Path(f"kick-{frame}.png").resolve())
    bpy.ops.render.render(write_still=True)
