import { createHash, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { HashAlgorithm, PublicKeyDetails, TrustedRoot } from '@sigstore/protobuf-specs';
import { signStatement } from '../../registry/signature/sign.js';
import type { SignatureStatement } from '../../schemas/generated/types.js';

// The mock package patches Node's http with nock where this is not set; here its handlers answer real requests.
process.env.NOCK_OFF = 'true';
const { fulcioHandler, initializeCA, initializeCTLog, initializeTLog, initializeTSA, rekorHandler, tsaHandler } =
  await import('@sigstore/mock');

type Answer = (body: string) => Promise<{ statusCode: number; response: unknown; contentType?: string }>;

const BUILD = { sub: 'https://ci.example/owner/models/build.yml@refs/heads/main', iss: 'https://token.ci.example' };
export const SIGNER = { identity: BUILD.sub, issuer: BUILD.iss };

/** An identity token as a CI service gives it; the mock reads its claims and does not check its signature. */
export function identityToken(claims: object = {}): string {
  const encode = (part: object): string => Buffer.from(JSON.stringify(part)).toString('base64url');
  return `${encode({ alg: 'none' })}.${encode({ ...BUILD, ...claims })}.SecretSecretSecretSignature`;
}

const EVER = { start: new Date(0), end: undefined };
const spki = (key: KeyObject): Buffer => key.export({ type: 'spki', format: 'der' });
const keys = () => generateKeyPairSync('ec', { namedCurve: 'prime256v1' });

/** A Sigstore of its own on 127.0.0.1: certificate authority, logs, timestamp authority, and a CI service's tokens. */
export class TestSigstore {
  readonly url: string;
  /** What came, as "POST /path". */
  readonly log: string[] = [];
  /** Bodies that came, for tests of what is sent. */
  readonly bodies: string[] = [];
  /** What the CI service answers; undefined for a right token. */
  ciAnswer: { status: number; body: string } | undefined;
  /** Status that a path is answered with in place of the right answer. */
  readonly failing = new Map<string, number>();
  readonly root: TrustedRoot;
  readonly #server: Server;

  private constructor(server: Server, url: string, root: TrustedRoot) {
    this.#server = server;
    this.url = url;
    this.root = root;
  }

  /** @param issuedAt When the certificate authority believes it is. */
  static async start(issuedAt?: Date): Promise<TestSigstore> {
    const routes = new Map<string, Answer>();
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const [caKeys, logKeys, tsaKeys] = [keys(), keys(), keys()];
    const ctLog = await initializeCTLog(caKeys);
    const ca = await initializeCA(caKeys, ctLog, issuedAt);
    const tlog = await initializeTLog(url, logKeys);
    const clock = new Date();
    const tsa = await initializeTSA(tsaKeys, clock);
    const timestamp = tsaHandler(tsa);
    const log = rekorHandler(tlog);
    routes.set('/api/v2/signingCert', fulcioHandler(ca).fn);
    routes.set('/api/v1/log/entries', (body) => log.fn(canonicalEntry(body)));
    routes.set('/api/v1/timestamp', (body) => {
      // Whole seconds, as real ones have them: the mock drops zeros of a fraction, which the verifier does not read.
      clock.setTime(Math.floor(Date.now() / 1000) * 1000);
      return timestamp.fn(body);
    });
    const root = trustedRoot(url, ca, spki(logKeys.publicKey), ctLog, tsa);
    const self = new TestSigstore(server, url, root);
    server.on('request', async (request, response) => {
      const path = new URL(request.url ?? '/', url).pathname;
      self.log.push(`${request.method} ${request.url}`);
      let body = '';
      for await (const piece of request.setEncoding('utf8')) body += piece;
      self.bodies.push(body);
      const { statusCode, response: text, contentType = 'text/plain' } = await self.#answer(path, body, routes);
      response.writeHead(statusCode, { 'content-type': contentType }).end(text);
    });
    return self;
  }

  /** The environment of a CI job that signs here. */
  get env(): Record<string, string> {
    return {
      SIGSTORE_FULCIO_URL: this.url,
      SIGSTORE_REKOR_URL: `${this.url}/`,
      ACTIONS_ID_TOKEN_REQUEST_URL: `${this.url}/token?job=1`,
      ACTIONS_ID_TOKEN_REQUEST_TOKEN: 'SecretSecretSecretRequest',
    };
  }

  /** A bundle of this Sigstore; `claims` say who signs. */
  sign(statement: SignatureStatement, claims: object = {}, tsa = false): Promise<string> {
    const services = { fulcio: this.url, rekor: this.url, ...(tsa ? { tsa: this.url } : {}) };
    return signStatement(statement, services, async () => identityToken(claims));
  }

  get rootText(): string {
    return JSON.stringify(TrustedRoot.toJSON(this.root));
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #answer(path: string, body: string, routes: Map<string, Answer>) {
    const failing = this.failing.get(path);
    if (failing !== undefined) return { statusCode: failing, response: `no: ${body}`, contentType: 'text/plain' };
    if (path === '/token') {
      const { status, body: text } = this.ciAnswer ?? { status: 200, body: JSON.stringify({ value: identityToken() }) };
      return { statusCode: status, response: text, contentType: 'application/json' };
    }
    const answer = routes.get(path);
    return answer ? answer(body) : { statusCode: 404, response: 'no such path' };
  }
}

/** What the log notes of a proposed entry: digests and signatures in place of the envelope. The mock notes it as it came. */
function canonicalEntry(body: string): string {
  const { apiVersion, kind, spec } = JSON.parse(body);
  const { envelope, verifiers } = spec.proposedContent;
  const { payload, signatures } = JSON.parse(envelope);
  const digest = (bytes: string | Buffer) => ({
    algorithm: 'sha256',
    value: createHash('sha256').update(bytes).digest('hex'),
  });
  return JSON.stringify({
    apiVersion,
    kind,
    spec: {
      envelopeHash: digest(envelope),
      payloadHash: digest(Buffer.from(payload, 'base64')),
      signatures: signatures.map(({ sig }: { sig: string }, i: number) => ({ signature: sig, verifier: verifiers[i] })),
    },
  });
}

type Made<T extends (...args: never[]) => unknown> = Awaited<ReturnType<T>>;

function trustedRoot(
  url: string,
  ca: Made<typeof initializeCA>,
  logKey: Buffer,
  ctLog: Made<typeof initializeCTLog>,
  tsa: Made<typeof initializeTSA>,
): TrustedRoot {
  const log = (rawBytes: Buffer) => ({
    baseUrl: url,
    hashAlgorithm: HashAlgorithm.SHA2_256,
    publicKey: { rawBytes, keyDetails: PublicKeyDetails.PKIX_ECDSA_P256_SHA_256, validFor: EVER },
    logId: { keyId: createHash('sha256').update(rawBytes).digest() },
    checkpointKeyId: undefined,
    operator: 'test',
  });
  const authority = (...certificates: ArrayBufferView[]) => ({
    subject: { organization: 'test', commonName: 'test' },
    uri: url,
    certChain: { certificates: certificates.map((one) => ({ rawBytes: Buffer.from(one as Uint8Array) })) },
    validFor: EVER,
    operator: 'test',
  });
  return {
    mediaType: 'application/vnd.dev.sigstore.trustedroot+json;version=0.1',
    certificateAuthorities: [authority(ca.rootCertificate)],
    timestampAuthorities: [authority(tsa.intCertificate, tsa.rootCertificate)],
    tlogs: [log(logKey)],
    ctlogs: [log(ctLog.publicKey)],
  };
}
