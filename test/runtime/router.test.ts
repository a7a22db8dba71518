import { describe, expect, it } from '@jest/globals';
import { Laya } from '../../runtime/index.js';
import { LayaRouter } from '../../runtime/router.js';
import { type JsonObject, parseJson, toPlain } from '../../schemas/json.js';
import { registerLayaTiny } from '../registered.js';
import { codeOf, keptFolder } from '../workspace.js';

const folder = keptFolder();
let registered: Promise<void> | undefined;

/** A router with laya-tiny behind both names. */
async function openRouter() {
  registered ??= registerLayaTiny(folder(), [64]);
  await registered;
  const opened: string[] = [];
  const open = (model: string, options: object) => {
    opened.push(model);
    return Laya.open('laya-tiny', options);
  };
  const router = await LayaRouter.open(open, { env: { LAYA_APPLE_CACHE: folder() }, device: 'cpu' });
  return { router, opened };
}

const questions = { topic: { type: 'choice', instructions: 'Topic?', criteria: ['billing', 'delivery', 'other'] } };

describe('LayaRouter', () => {
  it('answers with the model of the language, and tells why', async () => {
    const { router, opened } = await openRouter();
    expect(opened).toEqual(['laya', 'laya-multilingual']);
    const english = await router.predict({ context: 'I was charged twice for my order.', questions });
    expect(english.runtime).toMatchObject({ model: 'laya-tiny', model_routing: 'language_english', device: 'cpu' });
    expect(english.routing).toMatchObject({ model: 'english', repo: 'convaiinnovations/laya', workflow: null });
    expect(english.answers.topic!.type).toBe('choice');
    const german = await router.predict({ context: 'Mir wurde zweimal Geld abgebucht.', questions });
    expect(german.runtime.model_routing).toBe('language_not_english');
    expect(german.routing).toMatchObject({ model: 'multilingual', repo: 'convaiinnovations/laya-multilingual' });
    await router.close();
  }, 300_000);

  it('prints the routing block before the runtime, with upstream’s keys', async () => {
    const { router } = await openRouter();
    const result = await router.predict({ context: '注文はどこですか', questions });
    const json = result.toJson();
    expect([...json.keys()]).toEqual(['model', 'answers', 'usage', 'routing', 'runtime']);
    const routing = json.get('routing') as JsonObject;
    expect([...routing.keys()]).toEqual(['model', 'repo', 'reason', 'detection', 'workflow']);
    expect([...(routing.get('detection') as JsonObject).keys()]).toEqual([
      'script',
      'script_profile',
      'language',
      'is_english',
      'language_undecided',
      'diacritic_rate',
      'non_latin_fraction',
      'mixed_segment',
    ]);
    expect((json.get('runtime') as JsonObject).get('model_routing')).toBe('language_non_latin_script');
    await router.close();
  }, 300_000);

  it('shortlists on the model of the language, with both blocks', async () => {
    const { router } = await openRouter();
    const embed = (texts: readonly string[]) => texts.map((text) => [text.length, 1]);
    const result = await router.predictShortlist({ context: 'Wo ist mein Paket?', questions }, { embed, k: 2 });
    expect(result.shortlist.topic).toMatchObject({ k: 2, n: 3, passthrough: false });
    expect(Object.keys(toPlain(result.toJson().get('answers')!) as object)).toEqual(['topic']);
    expect([...result.toJson().keys()]).toEqual(['model', 'answers', 'usage', 'shortlist', 'routing', 'runtime']);
    await router.close();
  }, 300_000);

  it('warms both models and tells of both', async () => {
    const { router } = await openRouter();
    await router.warmUp();
    const info = router.info();
    for (const model of ['laya', 'laya-multilingual'] as const)
      expect(info[model]).toMatchObject({ model: 'laya-tiny', cpu: { status: 'ready', loaded: ['L64'] } });
    expect(await codeOf(() => router.waitForAne())).toBe('DEVICE_UNAVAILABLE');
    await router.close();
  }, 300_000);

  it('decides without running, also for what predict refuses', async () => {
    const { router } = await openRouter();
    const security = { true_positive: 1, urgency: 1, severity: 1, disposition: 1, credential_compromise: 1 };
    const decision = await router.route({ context: '', questions: security });
    expect(decision).toMatchObject({ checkpoint: 'laya', model_routing: 'no_text_default' });
    expect(decision.routing.workflow).toBe('security_incidents');
    expect((await router.route({ context: null, questions: [] })).model_routing).toBe('no_text_default');
    expect(await codeOf(() => router.predict({ context: null, questions }))).toBe('STATE_INVALID');
    expect(await codeOf(() => router.predict({ context: 'hello', questions: { a: 1 } }))).toBe('QUESTION_INVALID');
    expect(await codeOf(() => router.predict({ context: undefined, questions }))).toBe('RECORD_INVALID');
    await router.close();
  }, 300_000);
});

/** A model that does nothing but count its closings. */
class Idle {
  closed = 0;
  readonly failure: Error | undefined;

  constructor(failure?: Error) {
    this.failure = failure;
  }

  async predict(_request: { context: unknown; questions: unknown }, ...rest: string[]) {
    return { runtime: {}, rest, toJson: () => parseJson('{"model": "idle"}') as JsonObject };
  }

  async close(): Promise<void> {
    this.closed++;
    if (this.failure) throw this.failure;
  }
}

describe('the models of a router', () => {
  it('are closed again when one of them can not be opened', async () => {
    for (const bad of ['laya', 'laya-multilingual']) {
      const idle = new Idle();
      const failure = new Error('not there');
      const open = async (model: string): Promise<Idle> => {
        if (model === bad) throw failure;
        return idle;
      };
      await expect(LayaRouter.open(open)).rejects.toBe(failure);
      expect(idle.closed).toBe(1);
    }
  });

  it('are both closed when closing one fails', async () => {
    const models = new Map([
      ['laya', new Idle(new Error('stuck'))],
      ['laya-multilingual', new Idle()],
    ]);
    const router = await LayaRouter.open(async (model) => models.get(model)!);
    await expect(router.close()).rejects.toThrow('stuck');
    expect([...models.values()].map(({ closed }) => closed)).toEqual([1, 1]);
  });

  it('get the further arguments of predict, and are closed by await using', async () => {
    const idle = new Idle();
    {
      await using router = await LayaRouter.open(async () => idle);
      expect((await router.predict({ context: 'hi', questions: [] }, 'further')).rest).toEqual(['further']);
      const json = (await router.predict({ context: 'hi', questions: [] })).toJson();
      expect([...json.keys()]).toEqual(['model', 'routing', 'runtime']);
    }
    expect(idle.closed).toBe(2);
  });
});
