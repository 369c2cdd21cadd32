/**
 * Leaves in a package.json of BullMQ the packages that its tests need, and adds the released package of that version.
 */

import { readFileSync, writeFileSync } from 'node:fs';

const NEEDED = /^(vitest|typescript|sinon|ioredis|redis|pg|fast-glob|minimatch|moment|progress|rimraf|rrule|test-console|ts-node|semver|glob|chai|@types\/(node|sinon|semver|pg))$/;

const all = JSON.parse(readFileSync('package.json', 'utf8'));
all.devDependencies = Object.fromEntries(Object.entries(all.devDependencies).filter(([name]) => NEEDED.test(name)));
all.devDependencies['bullmq-released'] = `npm:bullmq@${all.version}`;
delete all.scripts;
writeFileSync('package.json', JSON.stringify(all));
