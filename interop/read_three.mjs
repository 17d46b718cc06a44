// Plays a glTF or FBX scene with three.js and prints where its joints and vertices are.
//
//   node read_three.mjs scene.glb rate frames [animation]
//
// Numbers are in the unit of the file. FBX has one vertex for every corner of a face.
// Prints JSON: for every skinned mesh its name, the names of its joints, `joints`
// (frame, joint, 3) and `vertices` (frame, vertex, 3); and `nodes`, the world positions
// (frame, 3) and sizes of all meshes without a skin, by name.
import { readFileSync } from "node:fs";
import { AnimationMixer, LoopOnce, Vector3 } from "three";
import { FBXLoader } from "three/addons/loaders/FBXLoader.js";
import { GLTFLoader } from "three/addons/loaders/GLTFLoader.js";

globalThis.ProgressEvent ??= class extends Event {}; // the loader of a browser makes them
globalThis.window ??= { URL }; // where FBXLoader looks for textures

const [path, rate, frames, number] = process.argv.slice(2);
const bytes = readFileSync(path);
const content = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
const open = { glb: openGltf, gltf: openGltf, fbx: openFbx }[path.split(".").pop()];
const { scene, animations } = await open(content);
const mixer = new AnimationMixer(scene);
const action = mixer.clipAction(animations[Number(number ?? 0)]);
action.setLoop(LoopOnce);
action.clampWhenFinished = true;
action.play();

function openGltf(data) {
  return new GLTFLoader().parseAsync(data, "");
}

function openFbx(data) {
  const scene = new FBXLoader().parse(data, "");
  return { scene, animations: scene.animations };
}

// A skeleton of FBXLoader has only the bones that bend the mesh: take the whole tree.
function bonesOf(mesh) {
  if (!path.endsWith(".fbx")) return mesh.skeleton.bones;
  let root = mesh.skeleton.bones[0];
  while (root.parent?.isBone) root = root.parent;
  const bones = [];
  root.traverse((thing) => thing.isBone && bones.push(thing));
  return bones;
}

const skinned = [];
const plain = {};
scene.traverse((thing) => {
  if (thing.isSkinnedMesh) {
    const bones = bonesOf(thing);
    const names = bones.map((bone) => bone.name);
    skinned.push({ thing, bones, name: thing.name, names, joints: [], vertices: [] });
  } else if (thing.isMesh) {
    plain[thing.name] = { thing, position: [], size: [] };
  }
});
const point = new Vector3();
for (let frame = 0; frame < Number(frames); frame += 1) {
  mixer.setTime(frame / Number(rate));
  scene.updateMatrixWorld(true);
  for (const one of skinned) {
    one.thing.skeleton.update();
    one.joints.push(one.bones.map((bone) => bone.getWorldPosition(point).toArray()));
    const places = [];
    for (let i = 0; i < one.thing.geometry.attributes.position.count; i += 1) {
      one.thing.getVertexPosition(i, point).applyMatrix4(one.thing.matrixWorld);
      places.push(point.toArray());
    }
    one.vertices.push(places);
  }
  for (const one of Object.values(plain)) {
    one.position.push(one.thing.getWorldPosition(point).toArray());
    one.size.push(one.thing.scale.x);
  }
}
const drop = ({ thing, bones, ...rest }) => rest;
const nodes = Object.fromEntries(Object.entries(plain).map(([n, one]) => [n, drop(one)]));
const animation = animations.map((clip) => clip.name);
console.log(JSON.stringify({ skinned: skinned.map(drop), nodes, animation }));
