// Prints the report of the Khronos glTF validator about each file, as JSON.
import { readFileSync } from "node:fs";
import validator from "gltf-validator";

const reports = [];
for (const path of process.argv.slice(2)) {
  const bytes = new Uint8Array(readFileSync(path));
  const report = await validator.validateBytes(bytes, { maxIssues: 20 });
  reports.push(report.issues);
}
console.log(JSON.stringify(reports));
