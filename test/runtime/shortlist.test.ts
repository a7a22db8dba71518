import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import type { Answered } from '../../runtime/extend.js';
import { predictShortlist, type ShortlistOptions } from '../../runtime/shortlist.js';
import { fromPlain, type JsonObject, type JsonValue, parseJson, stringifyJson, toPlain } from '../../schemas/json.js';
import { codeOf } from '../workspace.js';

interface Request {
  readonly context: unknown;
  readonly questions: unknown;
  readonly minConfidence?: number;
}

/** A model that tells what it was asked. */
class Listener {
  readonly asked: Request[] = [];

  async predict(request: Request): Promise<Answered & { readonly model: string }> {
    this.asked.push(request);
    const json = () =>
      new Map<string, JsonValue>([
        ['model', 'test'],
        ['runtime', new Map([['device', 'none']])],
      ]);
    return { model: 'test', runtime: { device: 'none' }, toJson: json };
  }
}

/** The vectors that the recorder made: letters counted by code point. */
const embed = (texts: readonly string[]): number[][] =>
  texts.map((text) => {
    const vector = Array.from({ length: 7 }, () => 0);
    for (const letter of text) vector[letter.codePointAt(0)! % 7]!++;
    return vector;
  });

const recorded = parseJson(readFileSync(new URL('../fixtures/shortlists.json', import.meta.url), 'utf8')) as JsonObject;
const cases = recorded.get('cases') as JsonObject[];

const request = (criteria: unknown, more: object = {}): Request => ({
  context: 'aaab',
  questions: { topic: { type: 'choice', instructions: 'Which?', criteria, ...more } },
});
const ask = async (asked: Request, options: ShortlistOptions) => {
  const listener = new Listener();
  const result = await predictShortlist(listener, asked, options);
  return { result, listener, questions: toPlain(listener.asked[0]!.questions as JsonValue) };
};
const refusal = (options: unknown, asked: Request = request(['a', 'b', 'c'])) =>
  codeOf(() => predictShortlist(new Listener(), asked, options as ShortlistOptions));

describe('predictShortlist', () => {
  it('keeps and asks what upstream keeps and asks', async () => {
    expect(cases.length).toBe(60);
    for (const one of cases) {
      const k = Number(toPlain(one.get('k')!));
      const listener = new Listener();
      const asked = { context: one.get('state'), questions: one.get('questions') };
      const result = await predictShortlist(listener, asked, { embed, k });
      expect(stringifyJson(listener.asked[0]!.questions as JsonValue)).toBe(stringifyJson(one.get('asked')!));
      const found = result.toJson().get('shortlist') as JsonObject;
      const wanted = one.get('shortlist') as JsonObject;
      expect([...found.keys()]).toEqual([...wanted.keys()]);
      for (const [id, value] of wanted) {
        const [ours, theirs] = [found.get(id) as JsonObject, value as JsonObject];
        const [scores, expected] = [toPlain(ours.get('scores')!), toPlain(theirs.get('scores')!)];
        for (const [index, score] of ((expected as number[] | null) ?? []).entries()) {
          expect((scores as number[])[index]).toBeCloseTo(score, 12);
        }
        for (const field of ['labels', 'k', 'n', 'passthrough']) {
          expect(stringifyJson(ours.get(field)!)).toBe(stringifyJson(theirs.get(field)!));
        }
      }
    }
  });

  it('embeds all texts of a request in one call and asks once', async () => {
    const calls: (readonly string[])[] = [];
    const questions = {
      a: { type: 'choice', instructions: 'First?', criteria: ['x', 'y'] },
      b: { type: 'choice', instructions: 'Second?', criteria: { p: 'one', q: null } },
    };
    const listener = new Listener();
    await predictShortlist(
      listener,
      { context: { text: 'hi' }, questions, minConfidence: 0.5 },
      {
        embed: async (texts) => {
          calls.push(texts);
          return embed(texts);
        },
        k: 1,
      },
    );
    expect(calls).toEqual([['First?\n{"text": "hi"}', 'x', 'y', 'Second?\n{"text": "hi"}', 'p: one', 'q']]);
    expect(listener.asked.length).toBe(1);
    expect(listener.asked[0]).toMatchObject({ context: { text: 'hi' }, minConfidence: 0.5 });
  });

  it('does not embed when no question has more labels than k', async () => {
    const fail = () => {
      throw new Error('embedded');
    };
    const { result, questions } = await ask(request(['a', 'b']), { embed: fail, k: 2 });
    expect({ ...result.shortlist }).toEqual({
      topic: { labels: ['a', 'b'], scores: null, k: 2, n: 2, passthrough: true },
    });
    expect(questions).toEqual({ topic: { type: 'choice', instructions: 'Which?', criteria: ['a', 'b'] } });
    const listed = await ask({ context: 'x', questions: ['Is it urgent?'] }, { embed: fail });
    expect([listed.questions, { ...listed.result.shortlist }]).toEqual([['Is it urgent?'], {}]);
  });

  it('keeps the earlier of equal labels, and ranks a zero vector at 0', async () => {
    const vectors: Record<string, number[]> = { a: [0, 0], b: [1, 1], c: [2, 2], d: [-1, 0] };
    const { result } = await ask(request(['d', 'a', 'c', 'b']), {
      embed: (texts) => texts.map((text) => vectors[text] ?? [1, 1]),
      k: 3,
    });
    expect(result.shortlist.topic!.labels).toEqual(['c', 'b', 'a']);
    expect(result.shortlist.topic!.scores!.map((score) => Math.round(score * 1e9) / 1e9)).toEqual([1, 1, 0]);
  });

  it('compares vectors whose squares overflow or vanish', async () => {
    for (const scale of [1e200, 1e-200, Number.MAX_VALUE, Number.MIN_VALUE]) {
      const { result } = await ask(request(['b', 'a']), {
        embed: (texts) => texts.map((text) => (text === 'b' ? [0, scale] : [scale, 0])),
        k: 1,
      });
      expect(result.shortlist.topic).toMatchObject({ labels: ['a'], scores: [1] });
    }
  });

  it('keeps labels as they were written, and drops an order that was for all of them', async () => {
    const text =
      '{"q": {"type": "choice", "instructions": "?", "criteria": [1.50, true, "x"], "option_order": [2, 0, 1]}}';
    const { result, listener } = await ask({ context: 'x', questions: parseJson(text) }, { embed, k: 2 });
    const asked = stringifyJson(listener.asked[0]!.questions as JsonValue);
    expect(asked).toBe('{"q":{"type":"choice","instructions":"?","criteria":[true,"x"]}}');
    expect(result.shortlist.q!.labels).toEqual([true, 'x']);
    const three = await ask({ context: '1.50', questions: parseJson(text) }, { embed, k: 2 });
    expect(stringifyJson(three.result.toJson().get('shortlist')!)).toContain('1.50');
  });

  it('does not change the request', async () => {
    const questions = fromPlain(request(['a', 'b', 'c']).questions);
    const before = stringifyJson(questions);
    await predictShortlist(new Listener(), { context: 'x', questions }, { embed, k: 1 });
    expect(stringifyJson(questions)).toBe(before);
  });

  it('prints the shortlists before the runtime', async () => {
    const { result } = await ask(request(['a', 'b', 'c']), { embed, k: 2 });
    expect([...result.toJson().keys()]).toEqual(['model', 'shortlist', 'runtime']);
  });

  it('refuses a wrong k and what is no embed function', async () => {
    for (const k of [0, -1, 1.5, Number.NaN, '3', null])
      expect(await refusal({ embed, k })).toBe('SHORTLIST_K_INVALID');
    for (const wrong of [undefined, null, 'embed']) {
      expect(await refusal({ embed: wrong, k: 1 })).toBe('SHORTLIST_EMBED_INVALID');
    }
  });

  it('refuses vectors that can not be compared', async () => {
    const four = (vector: unknown) => [[1, 0], [0, 1], [1, 1], vector];
    const wrong: unknown[] = [
      undefined,
      'vectors',
      [],
      [[1], [1]],
      four([1]),
      four([1, Number.NaN]),
      four([1, Number.POSITIVE_INFINITY]),
      four(['1', '2']),
      four(null),
      four(new DataView(new ArrayBuffer(2))),
      [[], [], [], []],
    ];
    for (const vectors of wrong) {
      expect(await refusal({ embed: () => vectors, k: 1 })).toBe('SHORTLIST_VECTORS_INVALID');
    }
    expect(await refusal({ embed: () => four(new Float32Array(2)), k: 1 })).toBe('no error');
  });

  it('refuses requests as predict does, before it embeds', async () => {
    const fail = { embed: () => Promise.reject(new Error('embedded')), k: 1 };
    expect(await refusal(fail, request(['a', 'a']))).toBe('QUESTION_INVALID');
    expect(await refusal(fail, request(null))).toBe('QUESTION_INVALID');
    expect(await refusal(fail, { ...request(['a', 'b']), context: null })).toBe('STATE_INVALID');
    expect(await refusal(fail, { context: 'x', questions: 7 })).toBe('QUESTIONS_INVALID');
  });

  it('passes on what embed throws', async () => {
    const thrown = new Error('no connection');
    const step = predictShortlist(new Listener(), request(['a', 'b']), { embed: () => Promise.reject(thrown), k: 1 });
    await expect(step).rejects.toBe(thrown);
  });
});
