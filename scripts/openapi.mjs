// The OpenAPI document of `serve`, made from the JSON Schemas in schemas/openapi/wire.json.
import { readFile } from 'node:fs/promises';

const root = new URL('../', import.meta.url);
const read = async (path) => JSON.parse(await readFile(new URL(path, root), 'utf8'));
const json = (name, description) => ({
  description,
  content: { 'application/json': { schema: { $ref: `#/components/schemas/${name}` } } },
});

const REFUSALS = {
  400: 'Not JSON, not an object, no state or no questions; text that is not Unicode.',
  401: 'No key, or a wrong one (only where LAYA_API_KEY is set).',
  403: 'A call from the page of another site.',
  408: 'The body did not arrive in time.',
  413: 'A body over 2 MiB, more than 64 questions, or a state over 50,000 characters.',
  415: 'Content-Type is not application/json.',
  421: 'The Host is not a loopback name, though the server is bound to loopback.',
  422: 'A question that can not be answered as it is; `where` names it and its field.',
  500: 'Inference failed. The reason is in the log, under the request id.',
  503: 'Busy, warming up, stopping (Retry-After is set), or the model is unavailable.',
};
const refusals = (...statuses) =>
  Object.fromEntries(statuses.map((status) => [status, json('Refusal', REFUSALS[status])]));

const get = (summary, responses, security) => ({ get: { summary, responses, ...(security ? { security } : {}) } });
const open = [];
const locked = [{ bearer: [] }, {}];
const text = (type) => ({ description: 'Text.', content: { [type]: { schema: { type: 'string' } } } });

const paths = {
  '/v1/systemone': {
    post: {
      summary: 'Answer typed questions about a state',
      operationId: 'systemOne',
      security: locked,
      requestBody: { required: true, ...json('SystemOneRequest', 'At most 2 MiB.') },
      responses: {
        200: json('SystemOneResponse', 'The answers, in the order of the questions.'),
        ...refusals(400, 401, 403, 408, 413, 415, 421, 422, 500, 503),
      },
    },
  },
  '/v1/models': get('The served models', { 200: json('Models', 'Models.'), ...refusals(401) }, locked),
  '/health': get('What is loaded and ready', { 200: json('Health', 'The server runs.') }, open),
  '/healthz': get('The same as /health', { 200: json('Health', 'The server runs.') }, open),
  '/ready': get(
    'Whether the default model can answer',
    { 200: json('Ready', 'It can.'), 503: json('Ready', 'It can not yet, or not any more.') },
    open,
  ),
  '/metrics': get('Metrics for Prometheus', { 200: text('text/plain'), ...refusals(401) }, locked),
  '/openapi.json': get('This document', { 200: { description: 'OpenAPI 3.1.' }, ...refusals(401) }, locked),
  '/': get('A page to try questions on', { 200: text('text/html') }, open),
};

/** The text of schemas/generated/openapi.json. */
export async function openapiText() {
  const [{ $defs }, { version, license }] = [await read('schemas/openapi/wire.json'), await read('package.json')];
  const schemas = JSON.parse(JSON.stringify($defs).replaceAll('"#/$defs/', '"#/components/schemas/'));
  const document = {
    openapi: '3.1.0',
    info: {
      title: 'laya-artifacts serve',
      summary: 'Typed questions about a text, answered with calibrated probabilities',
      version,
      license: { name: license, identifier: license },
    },
    servers: [{ url: '/' }],
    paths,
    components: { schemas, securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } } },
  };
  return `${JSON.stringify(document, null, 1)}\n`;
}
