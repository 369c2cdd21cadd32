'use strict';

const { spawn } = require('node:child_process');
const path = require('node:path');

/** Whether this system's C library is musl, as on Alpine. */
function isMusl() {
  const report = process.report && process.report.getReport();
  return !(report && report.header.glibcVersionRuntime);
}

/** Returns the path of the program dq. The variable DQ_CLI names another one. */
function program() {
  if (process.env.DQ_CLI) return process.env.DQ_CLI;
  const name = `dq-server-${process.platform}-${process.arch}${isMusl() ? '-musl' : ''}`;
  try {
    return path.join(path.dirname(require.resolve(`${name}/package.json`)), 'bin', 'dq');
  } catch {
    throw new Error(
      `the package ${name} is not installed: dq-server has programs for Linux on x64 and arm64, and npm must not be told to leave out optional dependencies`,
    );
  }
}

/**
 * Starts a server for a test: in memory, on a free port. It ends with this process, even if that is killed.
 *
 * @param {string[]} [options] more options of `dq server`
 * @returns {Promise<{url: string, stop: () => Promise<void>}>}
 */
function startServer(options = []) {
  return new Promise((resolve, reject) => {
    const child = spawn(program(), ['server', '--ephemeral', ...options], { stdio: ['ignore', 'pipe', 'pipe'] });
    const ended = new Promise((done) => child.once('close', done));
    let out = '';
    let errors = '';
    child.stderr.setEncoding('utf8').on('data', (text) => (errors += text));
    child.stdout.setEncoding('utf8').on('data', (text) => {
      out += text;
      const end = out.indexOf('\n');
      if (end < 0) return;
      // A program that only waits for its tests can end with the server still there.
      child.unref();
      child.stdout.destroy();
      child.stderr.destroy();
      resolve({
        url: out.slice(0, end),
        stop: async () => {
          child.ref();
          child.kill();
          await ended;
        },
      });
    });
    child.once('error', reject);
    child.once('close', (code) => reject(new Error(errors.trim() || `dq server ended with the code ${code}`)));
  });
}

module.exports = { program, startServer };
