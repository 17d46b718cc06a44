// Plays a glTF scene with three.js and prints where its joints and vertices are.
//
//   node read_three.mjs scene.glb rate frames [animation]
//
// Prints JSON: for every skinned mesh its name, the names of its joints, `joints`
// (frame, joint, 3) and `vertices` (frame, vertex, 3); and `nodes`, the world positions
// (frame, 3) and sizes of all meshes without a skin, by name.
import { readFileSync } from "node:fs";
import { AnimationMixer, LoopOnce, Vector3 } from "three";
import { GLTFLoader } from "three/addons/loaders/GLTFLoader.js";

globalThis.ProgressEvent ??= class extends Event {}; // the loader of a browser makes them

const [path, rate, frames, number] = process.argv.slice(2);
const bytes = readFileSync(path);
const content = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
const { scene, animations } = await new GLTFLoader().parseAsync(content, "");
const mixer = new AnimationMixer(scene);
const action = mixer.clipAction(animations[Number(number ?? 0)]);
action.setLoop(LoopOnce);
action.clampWhenFinished = true;
action.play();

const skinned = [];
const plain = {};
scene.traverse((thing) => {
  if (thing.isSkinnedMesh) {
    const joints = thing.skeleton.bones.map((bone) => bone.name);
    skinned.push({ thing, name: thing.name, names: joints, joints: [], vertices: [] });
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
    const bones = one.thing.skeleton.bones;
    one.joints.push(bones.map((bone) => bone.getWorldPosition(point).toArray()));
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
const drop = ({ thing, ...rest }) => rest;
const nodes = Object.fromEntries(Object.entries(plain).map(([n, one]) => [n, drop(one)]));
const animation = animations.map((clip) => clip.name);
console.log(JSON.stringify({ skinned: skinned.map(drop), nodes, animation }));
