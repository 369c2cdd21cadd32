export { DqClient, type DqClientOptions } from './client.js';
export { DqContext } from './context.js';
export { DqRecord } from './record.js';
export { DqServer, type DqServerOptions } from './server.js';
