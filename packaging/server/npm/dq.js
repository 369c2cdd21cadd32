#!/usr/bin/env node
'use strict';

const { spawn } = require('node:child_process');
const { program } = require('./index.js');

const child = spawn(program(), process.argv.slice(2), { stdio: 'inherit' });
// A terminal sends Ctrl-C to both. Other signals come to this process alone.
process.on('SIGINT', () => {});
for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
child.on('error', (error) => {
  console.error(`dq: ${error.message}`);
  process.exit(1);
});
child.on('exit', (code, signal) => (signal ? process.kill(process.pid, signal) : process.exit(code)));
