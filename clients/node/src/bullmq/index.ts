export { createDqBackend, type DqBackendOptions } from './factory.js';
export { DqQueueBackend } from './backend.js';
export { effects } from './effects.js';
