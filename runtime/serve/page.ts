import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { COMMON_HEADERS } from './reply.js';

/** The page at `/`, and a policy that lets it run its own script and style and talk to this server only. */
export interface Page {
  readonly html: string;
  readonly headers: Readonly<Record<string, string>>;
}

export async function loadPage(): Promise<Page> {
  const html = await readFile(new URL('./page.html', import.meta.url), 'utf8');
  const policy = [
    "default-src 'none'",
    `script-src ${hashOf(html, 'script')}`,
    `style-src ${hashOf(html, 'style')}`,
    "connect-src 'self'",
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ];
  const headers = {
    ...COMMON_HEADERS,
    'Content-Type': 'text/html; charset=utf-8',
    'Content-Security-Policy': policy.join('; '),
    'X-Frame-Options': 'DENY',
  };
  return { html, headers };
}

/** The hash by which the policy knows the one inline element of a kind. */
function hashOf(html: string, tag: 'script' | 'style'): string {
  const [, content = ''] = new RegExp(`<${tag}>([\\s\\S]*?)</${tag}>`).exec(html) ?? [];
  return `'sha256-${createHash('sha256').update(content).digest('base64')}'`;
}
