// What Python sends, field by field: `components/*_view.py` build it, and a test
// compares the names.

/** Templates in another language: a text, or its plural forms in the order of `common/i18n.js`. */
export type Words = Record<string, string | string[]>;

/** What every payload may hold beside its own fields; in English it holds neither. */
export interface Spoken {
  words?: Words;
  lang?: string;
}

/** What Streamlit calls a component with: the payload is in a list (`Element.draw` of `custom_component.py`). */
export type Sent = Omit<Component<Spoken>, "data"> & { data: Spoken[] };

/** What a component of ours is called with. */
export interface Component<Payload extends Spoken> {
  data: { payload: Payload };
  parentElement: HTMLElement;
  setStateValue(name: string, value: unknown): void;
  setTriggerValue(name: string, value: unknown): void;
}

/** Fills the root of a component; the signal comes once that has left the page. */
export type Create<View> = (root: HTMLElement, gone: AbortSignal) => View;

/** Draws what Python sent. */
export type Show<View, Payload extends Spoken> = (view: View, component: Component<Payload>) => void;

/** Numbers from 0 to 1 as `packing.py` packs them. */
export interface Packed {
  levels: number;
  count: number;
  steps: string;
  filled: string | null;
}

export interface PresenterPayload extends Spoken {
  spoken: string;
}

/** What stands next to a chart as text: `glassformer/runs/picture.py` says where. */
export interface Said {
  above: string;
  table: { columns: string[]; rows: string[][]; fold: string; note: string } | null;
  below: string;
  pale: boolean;
  beside: boolean;
}

export interface PlotlyPayload extends Spoken {
  figure: string;
  alt: string;
  height: number;
  caption: string;
  said: Said | null;
  name: string;
  file: string;
  about: [column: string, value: string][];
  table: string;
  fit: number;
  clickable: boolean;
  follows: string;
  step: number | null;
}

/** What a picture shows at each step of a run: the first whole, and what makes each other one of it. */
export interface Frames {
  first: Moment;
  changes: unknown[];
}

/** What of a chart may differ from step to step. */
export type Moment = Pick<PlotlyPayload, "alt" | "height" | "caption" | "said" | "file" | "about"> & { figure: object };

export interface SourceChip {
  piece: string;
  id: number;
  special?: boolean;
  unknown?: boolean;
}

export interface TargetChip {
  piece: string;
  id: number;
  probability: number | null;
  forced?: boolean;
  special?: boolean;
}

export interface SentRun {
  run_id: string;
  source: SourceChip[];
  target: TargetChip[];
  start_piece: string;
  texts: [kept: number, added: string][];
  shading: Packed | null;
  shading_label: string;
  stop_reason: string;
  cut: boolean;
  still: boolean;
}

export interface StepperPayload extends Spoken {
  name: string;
  run: SentRun;
  step: number;
  step_revision: number;
  covered: boolean;
  revealed_step: number | null;
  compact: boolean;
  foretold: boolean;
  large: boolean;
  led: boolean;
  asks: boolean;
  moves: string;
  chosen: number | null;
  choosable: boolean;
}

export interface RestPayload extends Spoken {
  name: string;
  /** The queries of the first step and of the second; null if Python has to hear of each step at once. */
  addresses: [string, string] | null;
}

export interface MomentsPayload extends Spoken {
  of: string;
  /** In order; the last is the checkpoint itself, which has no step. */
  stops: { step: number | null; name: string; told: string }[];
  at: number;
  revision: number;
}

export type Side = "query" | "key";

export interface Pin {
  side: Side;
  index: number;
}

export interface FlowPayload extends Spoken {
  sentence: string;
  kind: string;
  layer: string;
  queries: string[];
  keys: string[];
  query_axis: string;
  key_axis: string;
  query_side: "source" | "target" | "neutral";
  key_side: "source" | "target" | "neutral";
  row_of_step: (number | null)[];
  heads: number;
  weights: Packed;
  open: string | null;
  colours: [light: string, dark: string][];
  together: boolean;
  group: number;
  output: { query: number | null; key: number | null };
  shown: number[];
  following: boolean;
  pin: Pin | null;
  reports: boolean;
  heard: string | null;
  name: string;
  file: string;
  table: string;
  alt: string;
  caption: string;
}

/** A term of the glossary; `also` and `among` are words with "|" between, left out where there are none. */
export interface GlossaryTerm {
  id: string;
  name: string;
  text: string;
  also?: string;
  among?: string;
}

export interface GlossaryMarksPayload extends Spoken {
  terms: GlossaryTerm[];
  apart: string;
}

/** A term with where it is seen, if it is seen anywhere. */
export interface ListedTerm extends GlossaryTerm {
  place?: string;
  address?: string;
}

export interface GlossaryListPayload extends Spoken {
  terms: ListedTerm[];
  chosen: string;
}

/** An answer: the step, the run, the choice, whether it was right, the question's fingerprint. */
export type LessonRow = [step: string, run: string, choice: string, right: boolean, text: string];

export interface LessonMemoryPayload extends Spoken {
  rows: LessonRow[];
  forgotten: number;
  open: string;
  look: string[];
}

export interface RoomPayload extends Spoken {
  code: string;
  role: "student" | "teacher" | "viewer";
  secret: string;
  choice: { round: number; choice: number } | null;
  lesson: boolean;
  at: string;
}

export interface RoomCountsPayload extends Spoken {
  large: boolean;
}

/** A saved run in one language. */
export interface SavedIn {
  tag: string;
  name: string;
  title: string;
  about: [name: string, text: string][];
  live: string;
  query: { says: string; json: string };
  dark: string;
  light: string;
  stepper: StepperPayload;
  pages: SavedPage[];
  frames: Record<string, Frames>;
}

/** What a saved run has of a page; `missing` says what it has not. */
export interface SavedPage {
  path: string;
  title: string;
  address: string;
  missing: string;
  shows: (PlotlyPayload | FlowPayload)[];
}

/** A saved run, as `glassformer/extensions/saving/saved_run.py` writes it. */
export interface SavedRun {
  /** In each language one run, or two beside each other. */
  languages: SavedIn[][];
}

declare global {
  interface Window {
    glassformerRun?: SavedRun;
  }
  interface Document {
    /** The step that the reader looks at in each run; see `common/step.js`. */
    [run: `glassformerStep${string}`]: number | null | undefined;
  }
}
