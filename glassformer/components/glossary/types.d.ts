// What the modules of this folder hand to each other.

import type { GlossaryTerm } from "../common/payloads.js";
import type { Finder } from "./matching.js";

/** A term where it is underlined. */
export interface Marked {
  term: GlossaryTerm;
  range: Range;
}

export interface Tip {
  element: HTMLElement;
  name: HTMLElement;
  text: HTMLElement;
  shown: Marked | null;
}

export interface View {
  tip: Tip;
  terms: Map<string, GlossaryTerm>;
  find: Finder | null;
  said: string;
  /** By the element that their text is in. */
  marked: Map<Element, Marked[]>;
  stops: Map<string, HTMLElement>;
  observer: MutationObserver;
  watched: WeakSet<Node>;
  gone: AbortSignal;
  pointed?: HTMLElement | null;
  timer?: ReturnType<typeof setTimeout>;
  leaving?: ReturnType<typeof setTimeout>;
}
