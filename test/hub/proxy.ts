import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';

/** An HTTP proxy on 127.0.0.1 that tunnels and keeps a list of what it was asked for. */
export class TestProxy {
  /** "host:port" of each tunnel, in order. */
  readonly tunnels: string[] = [];
  /** The Proxy-Authorization header of each tunnel. */
  readonly credentials: (string | undefined)[] = [];
  private readonly server: Server;
  private readonly sockets = new Set<Socket>();

  private constructor() {
    this.server = createServer((_request, response) => response.writeHead(405).end());
    this.server.on('connect', (request, client: Socket) => {
      this.tunnels.push(request.url ?? '');
      this.credentials.push(request.headers['proxy-authorization']);
      const { hostname, port } = new URL(`http://${request.url}`);
      const target = connect(Number(port), hostname, () => client.write('HTTP/1.1 200 Connected\r\n\r\n'));
      target.pipe(client).pipe(target);
      for (const socket of [client, target]) {
        this.sockets.add(socket);
        socket.on('error', () => socket.destroy());
      }
    });
  }

  static async start(): Promise<TestProxy> {
    const proxy = new TestProxy();
    await new Promise<void>((resolve) => proxy.server.listen(0, '127.0.0.1', resolve));
    return proxy;
  }

  /** "127.0.0.1:port". */
  get host(): string {
    return `127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }
}
