// What the modules of the flow view hand to each other.

import type { Pin, Side } from "../common/payloads.js";
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
