import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { analyse } from '../../../runtime/language/analyse.js';
import { decideLanguage } from '../../../runtime/language/route.js';
import { fromPlain } from '../../../schemas/json.js';

const codeFor = async (state: unknown) => (await decideLanguage(fromPlain(state))).model_routing;

describe('decideLanguage', () => {
  it('sends English to laya, other languages and scripts to laya-multilingual, and the rest to laya', async () => {
    const expected: [unknown, string, string][] = [
      ['I was charged twice.', 'laya', 'language_english'],
      ['Der Kunde wurde zweimal belastet.', 'laya-multilingual', 'language_not_english'],
      ['修正失敗的測試', 'laya-multilingual', 'language_non_latin_script'],
      ['ok', 'laya', 'language_undecided_default'],
      ['12:30 🙂', 'laya', 'no_text_default'],
    ];
    for (const [state, checkpoint, model_routing] of expected) {
      expect(await decideLanguage(fromPlain(state))).toMatchObject({ checkpoint, model_routing });
    }
  });

  it('lets one field or line in another language decide', async () => {
    const note = 'The customer wrote again, please answer within the day. '.repeat(6);
    for (const message of ['Ich warte seit drei Wochen auf mein Geld', 'Где мой заказ, я жду неделю']) {
      const { checkpoint, detection } = await decideLanguage(fromPlain({ note, message }));
      expect([checkpoint, detection.mixed_segment]).toEqual(['laya-multilingual', message]);
      expect(await codeFor(`${note}\n${message}`)).toBe(await codeFor({ note, message }));
    }
  });

  it('takes no name, code or address for another language', async () => {
    const states = [
      { customer: 'José García', city: 'São Paulo', message: 'I want to cancel my order.' },
      'The parcel for Дмитрий Иванов was returned to us.',
      'The build fails:\nTypeError: foo.bar is not a function\n  at Object.<anonymous> (/srv/app/index.js:3:1)',
      'See https://example.de/hilfe/konto/loeschen for how it works.',
    ];
    for (const state of states) expect([state, await codeFor(state)]).toEqual([state, 'language_english']);
  });

  it('reads the part of a long state that the prompt keeps', async () => {
    const english = 'We have looked into it and will write to you again soon. '.repeat(150);
    const german = 'Ich habe mein Paket noch immer nicht bekommen. '.repeat(5);
    expect(await codeFor(english + german)).toBe('language_english');
    expect(await codeFor([english, german])).toBe('language_not_english');
    expect(await codeFor([german, english])).toBe('language_english');
  });
});

describe('analyse', () => {
  it('tells upstream’s facts', async () => {
    expect(await analyse('Où est ma commande ?')).toEqual({
      script: 'latin',
      script_profile: { latin: 1 },
      language: 'fr',
      is_english: false,
      language_undecided: false,
      diacritic_rate: 0.0667,
      non_latin_fraction: 0,
      mixed_segment: null,
    });
    expect(await analyse('order 订单状态')).toMatchObject({
      script: 'han',
      script_profile: { latin: 0.5556, han: 0.4444 },
      language: null,
      non_latin_fraction: 0.4444,
    });
    expect(await analyse('')).toMatchObject({ script: 'unknown', script_profile: {}, is_english: true });
  });

  it('does not name a language that fits badly', async () => {
    const { language, is_english } = await analyse('Bhagedhi akapokana nezvaitaurwa achiti iye haaimbotadza');
    expect([language, is_english]).toEqual([null, false]);
  });

  it('answers for any JSON, the same for the same', async () => {
    await fc.assert(
      fc.asyncProperty(fc.jsonValue(), fc.string({ unit: 'binary' }), async (value, text) => {
        for (const state of [fromPlain(value), text, fromPlain([value, text])]) {
          const found = await analyse(state);
          expect(await analyse(state)).toEqual(found);
          expect(Object.values(found.script_profile).every((share) => share >= 0 && share <= 1)).toBe(true);
          expect(found.language === 'en').toBe(found.is_english && !found.language_undecided);
        }
      }),
    );
  });

  it('reads hostile texts in time', async () => {
    const hostile = [
      'a'.repeat(1e6),
      '-'.repeat(1e6),
      'a.'.repeat(5e5),
      'a\u0301'.repeat(5e5),
      '{'.repeat(1e6),
      ' '.repeat(1e6),
      '\n'.repeat(1e6),
      'а'.repeat(1e6),
    ];
    for (const text of hostile) await analyse(text);
    await analyse(fromPlain(Array.from({ length: 20_000 }, () => 'hola amigo')));
  });
});
