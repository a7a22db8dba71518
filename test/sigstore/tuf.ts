import { createHash, generateKeyPairSync, sign } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A TUF repository with one target on 127.0.0.1, as Sigstore publishes its trust root. */
export interface TestTuf {
  readonly url: string;
  /** Text of the root.json that a client starts from. */
  readonly root: string;
  /** Paths that were asked for. */
  readonly log: string[];
  close(): Promise<void>;
}

const sorted = (value: unknown): unknown => {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(sorted);
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([name, member]) => [name, sorted(member)]));
};
const canonical = (value: unknown): string => JSON.stringify(sorted(value));
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

export async function startTuf(name: string, content: string): Promise<TestTuf> {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const raw = publicKey.export({ type: 'spki', format: 'der' }).subarray(-32).toString('hex');
  const key = { keytype: 'ed25519', scheme: 'ed25519', keyval: { public: raw } };
  const keyid = sha256(canonical(key));
  const signed = (body: object): string => {
    const full = { spec_version: '1.0.0', version: 1, expires: '2099-01-01T00:00:00Z', ...body };
    const sig = sign(null, Buffer.from(canonical(full)), privateKey).toString('hex');
    return JSON.stringify({ signed: full, signatures: [{ keyid, sig }] });
  };
  const role = { keyids: [keyid], threshold: 1 };
  const roles = { root: role, timestamp: role, snapshot: role, targets: role };
  const root = signed({ _type: 'root', consistent_snapshot: false, keys: { [keyid]: key }, roles });
  const target = { length: Buffer.byteLength(content), hashes: { sha256: sha256(content) } };
  const files: Record<string, string> = {
    '/timestamp.json': signed({ _type: 'timestamp', meta: { 'snapshot.json': { version: 1 } } }),
    '/snapshot.json': signed({ _type: 'snapshot', meta: { 'targets.json': { version: 1 } } }),
    '/targets.json': signed({ _type: 'targets', targets: { [name]: target } }),
    [`/targets/${name}`]: content,
  };
  const log: string[] = [];
  const server = createServer(({ url = '/' }, response) => {
    log.push(url);
    const text = files[url];
    response.writeHead(text === undefined ? 404 : 200).end(text);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const close = async (): Promise<void> => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, root, log, close };
}
