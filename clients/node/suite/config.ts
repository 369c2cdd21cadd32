import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['tests/*.test.ts'],
    testTimeout: 10_000,
    hookTimeout: 10_000,
    setupFiles: ['./dq.setup.ts'],
    sequence: { concurrent: false },
    fileParallelism: false,
    reporters: ['json'],
    outputFile: process.env.DQ_SUITE_REPORT,
  },
});
