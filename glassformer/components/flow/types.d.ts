// What the modules of the flow view hand to each other.

import type { FlowPayload, Pin, Side } from "../common/payloads.js";
import type { Under } from "../common/picture-footer.js";
import type { appearance } from "./drawing.js";
import type { placeRows, scene } from "./places.js";
import type { chooseLines, decode } from "./weights.js";

export type Model = ReturnType<typeof decode>;
export type Chosen = ReturnType<typeof chooseLines>;
export type Rows = ReturnType<typeof placeRows>;
export type Scene = ReturnType<typeof scene>;
export type Look = ReturnType<typeof appearance>;

export type Both<Value> = Record<Side, Value>;

/** A query and a key. */
export type Pair = Both<number>;

export interface Line extends Pair {
  head: number;
  weight: number;
}

/** What decides a scene. */
export interface Seen {
  model: Model;
  shown: number[];
  chosen: Chosen;
  focus: Pin | null;
  pair: Pair | null;
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
