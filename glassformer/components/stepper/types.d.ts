// What the modules of the stepper hand to each other.

import type { StepperPayload } from "../common/payloads.js";
import type { unpacked } from "./numbers.js";

/** A run whose texts are whole and whose shading is whole steps of 1 / levels, [step, source]. */
export type Run = ReturnType<typeof unpacked>;

export interface View {
  root: HTMLElement;
  targetName: HTMLElement;
  sourceList: HTMLElement;
  targetList: HTMLElement;
  sourceChips: HTMLElement[];
  targetChips: HTMLElement[];
  text: HTMLElement;
  caption: HTMLElement;
  note: HTMLElement;
  /** The buttons, the slider and the speed: in the bar, unless another stepper moves this one. */
  controls: HTMLElement;
  /** The controls and what they say. */
  bar: HTMLElement;
  /** The source piece that was picked. */
  picked: number | null;
  first: HTMLButtonElement;
  back: HTMLButtonElement;
  play: HTMLButtonElement;
  next: HTMLButtonElement;
  last: HTMLButtonElement;
  slider: HTMLInputElement;
  data: StepperPayload;
  setStateValue: (name: string, value: unknown) => void;
  setTriggerValue: (name: string, value: unknown) => void;
  run: Run;
  /** What the chips show; others are made when it changes. */
  shape: string;
  /** What the height of the output was measured for. */
  kept?: string;
  revision: number;
  step: number;
  settled: number;
  speed: number;
  timer: number | null;
  /** The step at which Play stopped since nobody had guessed it. */
  halted: number | null;
  settling: number;
}
