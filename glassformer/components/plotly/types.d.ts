// What the modules of the Plotly view hand to each other. Plotly's own figures have too many forms to be typed here.

import type { Frames, PlotlyPayload } from "../common/payloads.js";
import type { Cell } from "../common/save.js";
import type { Under } from "../common/picture-footer.js";

export type Trace = Record<string, any>;
export type Layout = Record<string, any>;

export interface Figure {
  data: Trace[];
  layout: Layout;
}

/** A list of Python's, or numbers in Plotly's base64 form or one of our shorter ones (`view.py`). */
export type Sent = any[] | { dtype: string; bdata: string; shape?: string; there?: string } | undefined;

export interface Table {
  columns: string[];
  rows: Cell[][];
}

/** `layout.meta.grid`: what `glassformer/charts/grid.py` packs. */
export interface Grid {
  codes: string;
  tops: number[];
  least: number;
  signed?: boolean;
  layers: string[];
  heads: string[];
  queries: string[];
  keys: string[];
}

/** `layout.meta.film`: the tiles of `glassformer/charts/film.py`, so many in a row. */
export interface Film {
  names: string[];
  queries: string[];
  keys: string[];
  columns: number;
  /** Height of a tile as a share of its width, and its least width in pixels. */
  share: number;
  least: number;
}

/** `layout.meta.follow`: what `glassformer/charts/heatmap.py` says. */
export interface Follow {
  rows: (number | null)[];
  starts: number[];
  marks: Record<string, any>[];
}

/** `layout.meta.ticks`: the pieces along an axis. */
export type Ticks = Record<string, { title: string; labels: string[]; whole?: Record<number, string> }>;

export interface Plot extends HTMLElement {
  layout: Layout;
  data: Trace[];
  _fullLayout?: Layout;
  on(name: string, act: (event: any) => void): void;
}

export interface Plotly {
  react(plot: Plot, data: Trace[], layout: Layout, config: object): Promise<unknown>;
  relayout(plot: Plot, changes: object): Promise<unknown>;
  toImage(figure: Figure, options: object): Promise<string>;
  purge(plot: Plot): void;
  Fx: { unhover(plot: Plot): void };
}

export interface View {
  frame: HTMLElement;
  root: HTMLElement;
  plot: Plot;
  /** Holds the plot and what lies on it, and is shown larger as a whole. */
  sheet: HTMLElement;
  note: HTMLElement;
  under: Under;
  reset: HTMLButtonElement;
  /** What Python sent, and what is shown of it: the picture at another step, where its frames are here. */
  sent: PlotlyPayload;
  data: PlotlyPayload;
  /** `sent.follows` when the frames were asked for. */
  follows: string;
  frames: Frames | null;
  /** What was drawn last, and the room that it had. */
  kept: { sent?: PlotlyPayload; room?: string };
  /** The step of what is shown. */
  at: number | null;
  inSight: boolean;
  setTriggerValue: (name: string, value: unknown) => void;
  plotly?: Plotly;
  /** What is drawn for: pixels before all is shown larger, by how much it is, and both as a text. */
  width: number;
  height: number;
  scale: number;
  room: string;
  clicks: number;
  wanted: boolean;
  drawing: boolean;
  gone: boolean;
  listening: boolean;
  /** Follows what was drawn with the grid that the keyboard moves over. */
  mapByKeyboard: () => void;
  edges: { point: (place?: number[]) => void };
  ranges: Record<string, number[] | null>;
  ticks?: Ticks;
  /** `layout.meta.links`: marks that lead to another page, by what they carry. */
  links?: Record<string, string>;
  labelled: string;
  follow?: Follow;
  /** The film of the figure at hand, by the text of that figure. */
  film?: { figure: string; film: Film | undefined };
  shapes: Record<string, any>[];
  marked: number | null;
}

declare global {
  interface Window {
    Plotly?: Plotly;
    __glassformerPlotly?: Map<string, Promise<Plotly>>;
  }
}
