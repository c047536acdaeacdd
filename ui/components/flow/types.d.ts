// What the modules of the flow view hand to each other.

import type { FlowPayload, Pin, Side } from "../common/payloads.js";
import type { Under } from "../common/under.js";

export type Both<Value> = Record<Side, Value>;

/** The weights as whole steps [head, query, key] of 1 / levels; masked cells are closed in `open` and hold 0. */
export interface Model {
  queries: number;
  keys: number;
  heads: number;
  cells: number;
  open: Uint8Array;
  steps: Uint16Array;
  levels: number;
}

/** A query and a key. */
export type Pair = Both<number>;

export interface Line extends Pair {
  head: number;
  weight: number;
}

/** The lines to draw, weakest first, and what is left out: see `chooseLines`. */
export interface Chosen {
  lines: Line[];
  all: number;
  crowded: boolean;
  share: number;
  cut: number;
}

export interface Column {
  pitch: number;
  start: number;
}

export interface Rows extends Both<Column> {
  pitch: number;
  height: number;
}

export interface DrawnLine {
  head: number;
  x0: number;
  y0: number;
  x1: number;
  y1: number;
  alpha: number;
}

export interface Block {
  head: number;
  x: number;
  y: number;
  width: number;
  height: number;
  alpha: number;
}

export interface Scene {
  lines: DrawnLine[];
  blocks: Block[];
}

/** What decides a scene. */
export interface Seen {
  model: Model;
  shown: number[];
  chosen: Chosen;
  focus: Pin | null;
  pair: Pair | null;
}

export interface Look {
  colours: string[];
  faint: string;
  background: string;
  text: string;
  query: string;
  key: string;
  line: number;
  size: number;
}

export interface View extends Seen {
  root: HTMLElement;
  body: HTMLElement;
  title: HTMLElement;
  readout: HTMLElement;
  count: HTMLElement;
  under: Under;
  heads: HTMLElement;
  chips: HTMLElement;
  slider: HTMLInputElement;
  cutText: HTMLElement;
  follow: HTMLButtonElement;
  axes: Both<HTMLElement>;
  lists: Both<HTMLElement>;
  tokens: Both<HTMLElement[]>;
  scroll: HTMLElement;
  stage: HTMLElement;
  canvas: HTMLCanvasElement;
  data: FlowPayload;
  setStateValue: (name: string, value: unknown) => void;
  /** Names this view in what Python is told, so that it can say what it has heard. */
  mount: string;
  sent: number;
  stamp: string;
  pin: Pin | null;
  pointed: Pin | null;
  following: boolean;
  /** Of the pieces that stand there. */
  signature: string;
  width: number;
  /** The height that the lines were given. */
  room: number;
  rows?: Rows;
  spans: { left: number; right: number; middle: number };
  /** By how much letters, and all that goes with them, are larger than usual. */
  scale: number;
  textSize: number;
  painted: Scene;
  note: string;
  revealed: number;
}
