/** The package: its files, its imports, and its types. */

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import test from 'node:test';

import * as esm from 'dq-queue';

const root = join(import.meta.dirname, '..');
const require = createRequire(import.meta.url);
const run = (command, ...words) => execFileSync(command, words, { cwd: root, encoding: 'utf8' });

test('the package has what is built, its page and its licence, and nothing else', () => {
  const [packed] = JSON.parse(run('npm', 'pack', '--dry-run', '--ignore-scripts', '--json'));
  const files = packed.files.map(({ path }) => path);
  const stray = files.filter((path) => !/^(dist\/.*\.(d\.ts|d\.mts|js|mjs)|README\.md|LICENSE|package\.json)$/.test(path));
  assert.deepEqual(stray, []);
  for (const entry of ['index', 'nestjs/index', 'bullmq/index', 'opentelemetry/index']) {
    for (const kind of ['js', 'mjs', 'd.ts', 'd.mts']) assert.ok(files.includes(`dist/${entry}.${kind}`), `${entry}.${kind}`);
  }
  for (const file of ['README.md', 'LICENSE', 'package.json']) assert.ok(files.includes(file), file);
});

test('every entry point is there, as ESM and as CommonJS', () => {
  const { exports } = require('dq-queue/package.json');
  for (const [name, entry] of Object.entries(exports)) {
    for (const file of typeof entry === 'string' ? [entry] : Object.values(entry)) assert.ok(existsSync(join(root, file)), `${name}: ${file}`);
  }
  const cjs = require('dq-queue');
  const names = Object.keys(cjs).sort();
  assert.deepEqual(Object.keys(esm).filter((name) => !['__esModule', 'default', 'module.exports'].includes(name)).sort(), names);
  // Both builds have one class for each error, so that an error of one is known to the other.
  for (const name of names) assert.equal(esm[name], cjs[name]);
});

test('each entry point has types for compilers that do not read exports', () => {
  const { exports, types, typesVersions } = require('dq-queue/package.json');
  assert.ok(existsSync(join(root, types)));
  for (const name of Object.keys(exports)) {
    if (['.', './package.json'].includes(name)) continue;
    const [file] = typesVersions['*'][name.slice(2)];
    assert.ok(existsSync(join(root, file)), name);
  }
});

test('the package needs no Redis library and no framework by itself', () => {
  const { dependencies, peerDependencies, peerDependenciesMeta } = require('dq-queue/package.json');
  assert.equal(dependencies, undefined);
  for (const name of Object.keys(peerDependencies)) assert.equal(peerDependenciesMeta[name].optional, true, name);
});

test('types hold for a correct program, and find mistakes', () => {
  const flags = ['--ignoreConfig', '--noEmit', '--strict', '--skipLibCheck', '--module', 'nodenext', '--target', 'es2022', '--types', 'node'];
  try {
    run('npx', 'tsc', ...flags, 'test/types.mts');
  } catch (error) {
    assert.fail(error.stdout);
  }
});
