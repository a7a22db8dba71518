// Compares the names of Core ML that laya-probe uses with swift-probe/core-ml-api.json: names that are not listed, listed
// ones that are not used or not in the stand-in, and ones newer than the macOS that Package.swift asks for.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const read = (folder) =>
  readdirSync(folder)
    .filter((name) => name.endsWith('.swift'))
    .map((name) => readFileSync(join(folder, name), 'utf8').replace(/\/\/.*$/gm, ''))
    .join('\n');

const all = (text, pattern) => new Set(Array.from(text.matchAll(pattern), (match) => match[1]));

/** The faults, as sentences; none when all agrees. */
export function apiFaults(root) {
  const api = JSON.parse(readFileSync(join(root, 'core-ml-api.json'), 'utf8'));
  const source = read(join(root, 'Sources', 'ProbeCoreML'));
  const standIn = read(join(root, 'Stub', 'CoreML'));
  const wanted = Number(/\.macOS\(\.v(\d+)\)/.exec(readFileSync(join(root, 'Package.swift'), 'utf8'))?.[1]);
  const faults = [];

  const types = all(source, /\b(ML[A-Z]\w*)/g);
  for (const type of types) if (!(type in api.types)) faults.push(`${type} is used and not listed`);
  for (const type of Object.keys(api.types)) if (!types.has(type)) faults.push(`${type} is listed and not used`);

  const declared = all(standIn, /public (?:static |class )?(?:let|var|func) (\w+)|^ +case (\w+)/gm);
  for (const name of all(standIn, /^ +case (\w+)/gm)) declared.add(name);
  const used = all(source, /\.(\w+)/g);
  const bases = new Set(Object.keys(api.members).map((name) => name.split('(')[0]));
  for (const name of used) if (declared.has(name) && !bases.has(name)) faults.push(`.${name} is used and not listed`);
  for (const name of bases) {
    if (name === 'init') continue;
    if (!declared.has(name)) faults.push(`${name} is listed and not in the stand-in`);
    if (!used.has(name)) faults.push(`${name} is listed and not used`);
  }
  for (const name of Object.keys(api.members).filter((one) => one.startsWith('init('))) {
    const labels = name.slice(5, -1).split(':').filter(Boolean);
    const call = new RegExp(labels.map((label) => `\\b${label}:`).join('[\\s\\S]*?'));
    if (!call.test(source)) faults.push(`${name} is listed and not used`);
  }
  const versions = [
    ...Object.entries(api.types),
    ...Object.entries(api.members).map(([name, one]) => [name, one.macos]),
  ];
  for (const [name, macos] of versions)
    if (!(Number.parseFloat(macos) <= wanted))
      faults.push(`${name} came with macOS ${macos}, the package asks for ${wanted}`);
  return faults;
}
