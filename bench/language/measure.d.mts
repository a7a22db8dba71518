/** A recorded state with what upstream decided about it. */
export interface RecordedState {
  readonly kind: string;
  readonly expected: 'en' | 'other' | null;
  readonly state: unknown;
  readonly upstream: {
    readonly model: string;
    readonly code: string;
    readonly detection: { readonly script: string; readonly language: string | null; readonly is_english: boolean };
  };
}

/** A labelled line with upstream's code. */
export interface LabelledLine {
  readonly source: string;
  readonly language: string;
  readonly upstream: string;
  readonly text: string;
  readonly kind: 'English' | 'other, Latin script' | 'other script';
}

export interface Measured {
  readonly lines: readonly (LabelledLine & { readonly ours: string })[];
  readonly states: readonly (RecordedState & { readonly ours: string })[];
}

export function labelledLines(): LabelledLine[];
export function measure(decide: (state: unknown) => Promise<{ readonly model_routing: string }>): Promise<Measured>;
/** The tables of docs/language-routing.md, in its order. */
export function tables(measured: Measured): string[];
