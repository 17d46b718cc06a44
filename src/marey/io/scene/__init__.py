"""Scenes: figures with a body mesh, in motion, for programs that draw and animate.

What glTF, USD and FBX share: `build_scene` makes a `Scene` of a skeleton, a motion or a
solution, in metres and +Z up, and each format writes this value in its own words. The
mesh of a figure is made from its skeleton (`build_body_mesh`) and bends with it by
linear blend skinning (`BodyMesh.skin`).
"""

from marey.io.scene.body_mesh import BodyMesh as BodyMesh
from marey.io.scene.body_mesh import build_body_mesh as build_body_mesh
from marey.io.scene.figures import MarkerTracks as MarkerTracks
from marey.io.scene.figures import Scene as Scene
from marey.io.scene.figures import SceneFigure as SceneFigure
from marey.io.scene.figures import SceneTake as SceneTake
from marey.io.scene.figures import build_scene as build_scene
from marey.io.scene.format import scene_format as scene_format
