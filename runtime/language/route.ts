import type { JsonValue } from '../../schemas/json.js';
import { analyse, type Detection } from './analyse.js';

/** Why a state goes to the English or to the multilingual checkpoint. */
export type ModelRouting =
  | 'language_english'
  | 'language_non_latin_script'
  | 'language_not_english'
  | 'language_undecided_default'
  | 'no_text_default';

/** The checkpoint for a state, and why. */
export interface LanguageDecision {
  readonly checkpoint: 'laya' | 'laya-multilingual';
  readonly model_routing: ModelRouting;
  /** For people; may change. */
  readonly reason: string;
  readonly detection: Detection;
}

/** Chooses the checkpoint for a state by its language. Where nothing tells, it is the English one. */
export async function decideLanguage(state: JsonValue): Promise<LanguageDecision> {
  const detection = await analyse(state);
  const model_routing = codeOf(detection);
  const checkpoint = detection.is_english ? 'laya' : 'laya-multilingual';
  return { checkpoint, model_routing, reason: REASONS[model_routing](detection), detection };
}

function codeOf({ script, is_english, language_undecided }: Detection): ModelRouting {
  if (script === 'unknown') return 'no_text_default';
  if (script !== 'latin') return 'language_non_latin_script';
  if (!is_english) return 'language_not_english';
  return language_undecided ? 'language_undecided_default' : 'language_english';
}

const REASONS: Readonly<Record<ModelRouting, (detection: Detection) => string>> = {
  language_english: () => 'English text',
  language_non_latin_script: ({ script, non_latin_fraction, mixed_segment }) => {
    const where =
      mixed_segment === null ? `${Math.round(100 * non_latin_fraction)}% of the letters` : 'one line or field';
    return `script ${script} in ${where}, which the English checkpoint can't read`;
  },
  language_not_english: ({ language, mixed_segment }) => {
    const what = language === null ? 'a language other than English' : `language ${language}`;
    return mixed_segment === null ? `Latin script, ${what}` : `one line or field in ${what}, the rest in English`;
  },
  language_undecided_default: () => 'Latin script, but too little text to tell the language: the default',
  no_text_default: () => 'no letters in the state: the default',
};
