import { COMPILED, MANIFEST } from '../paths.js';
import { ArchiveError } from './errors.js';

/** What an archive may hold at most. Real ones have some ten members, two levels and names below 50 bytes. */
export const LIMITS = {
  members: 1000,
  /** Sum of the files' sizes, as in the Python runtime. */
  bytes: 4 * 2 ** 30,
  manifestBytes: 1 << 20,
  depth: 8,
  /** With components of at most 100, ustar has room for every such path. */
  path: 155,
  component: 100,
  /** Unpacked bytes for each byte of the archive; weights reach 1.1, texts 20. */
  ratio: 100,
  /** Below so many unpacked bytes the ratio is not looked at. */
  ratioFrom: 16 << 20,
} as const;

/** A member that may be written: its path has only safe components, and it is a regular file or a folder. */
export interface Member {
  readonly path: string;
  readonly folder: boolean;
  /** Size of the content; 0 for a folder. */
  readonly bytes: number;
}

const COMPONENT = /^[A-Za-z0-9_][A-Za-z0-9._+-]*$/;
const COMPANION = /^(?:\._.*|\.DS_Store|\.localized|\.Spotlight-V100|\.Trashes|\.fseventsd|__MACOSX|Icon\r)$/;

/**
 * The allow-list of an archive's members (protocol §11.2). Each is checked before a byte of it is written, and
 * `finish` says whether the archive was whole. The exporter follows the same rules, so what it writes can be read.
 */
export class MemberRules {
  /** Paths by their lower-case form: what they are, and whether a member said so. */
  readonly #seen = new Map<string, { readonly path: string; readonly folder: boolean; listed: boolean }>();
  #members = 0;
  #bytes = 0;

  /** Throws ArchiveError unless the member may stand beside those before it. */
  check(member: Member): Member {
    const { path, folder, bytes } = member;
    if (++this.#members > LIMITS.members) throw limit('members', LIMITS.members, 'more');
    const components = path.split('/');
    checkNames(path, components);
    this.#checkPlace(member, components);
    this.#bytes += bytes;
    if (this.#bytes > LIMITS.bytes) throw limit('unpacked bytes', LIMITS.bytes, this.#bytes, path);
    if (path === MANIFEST && bytes > LIMITS.manifestBytes) throw limit('manifest bytes', LIMITS.manifestBytes, bytes);
    if (folder && bytes !== 0) throw new ArchiveError('ARCHIVE_HEADER', 'a folder has no content', { where: path });
    return member;
  }

  /** Throws ARCHIVE_INCOMPLETE when the manifest or the model is missing. */
  finish(): void {
    for (const name of [MANIFEST, COMPILED])
      if (!this.#seen.has(name))
        throw new ArchiveError('ARCHIVE_INCOMPLETE', `the archive has no ${name}`, {
          expected: [MANIFEST, `${COMPILED}/...`],
          hint: 'is it an artifact made by `export`?',
        });
  }

  #checkPlace({ path, folder }: Member, components: readonly string[]): void {
    const allowed = path === MANIFEST ? !folder : components[0] === COMPILED && (folder || components.length > 1);
    if (!allowed)
      throw new ArchiveError('ARCHIVE_NAME', 'an artifact has no such member', {
        where: path,
        expected: [MANIFEST, `${COMPILED}/...`],
        found: folder ? `folder ${path}` : path,
      });
    for (let depth = 1; depth < components.length; depth++)
      this.#enter(components.slice(0, depth).join('/'), true, false);
    this.#enter(path, folder, true);
  }

  /** Paths that a case-folding file system would take for one must be one, of one kind, and listed once (fault R18). */
  #enter(path: string, folder: boolean, listed: boolean): void {
    const before = this.#seen.get(path.toLowerCase());
    if (before === undefined) {
      this.#seen.set(path.toLowerCase(), { path, folder, listed });
      return;
    }
    if (before.path !== path || before.folder !== folder || (before.listed && listed))
      throw new ArchiveError('ARCHIVE_DUPLICATE', 'two members have one path', {
        where: path,
        found: [before.path, path],
      });
    before.listed ||= listed;
  }
}

function checkNames(path: string, components: readonly string[]): void {
  if (path.length > LIMITS.path) throw limit('characters in a path', LIMITS.path, path.length, path);
  if (components.length > LIMITS.depth) throw limit('levels', LIMITS.depth, components.length, path);
  for (const component of components) {
    if (COMPANION.test(component))
      throw new ArchiveError('ARCHIVE_COMPANION', 'the archive holds companion files of a Mac', {
        where: path,
        found: component,
        hint: 'make it with `export`, or pack it with COPYFILE_DISABLE=1',
      });
    if (component.length > LIMITS.component)
      throw limit('characters in a name', LIMITS.component, component.length, path);
    if (!COMPONENT.test(component))
      throw new ArchiveError('ARCHIVE_NAME', 'a member has a name that is not safe', {
        where: path,
        expected: 'letters, digits and . _ + -, not starting with a dot',
        found: component,
      });
  }
}

function limit(what: string, most: number, found: number | string, where?: string): ArchiveError {
  return new ArchiveError('ARCHIVE_LIMIT', `too many ${what}`, {
    expected: `at most ${most}`,
    found,
    ...(where === undefined ? {} : { where: where.slice(0, 300) }),
  });
}
