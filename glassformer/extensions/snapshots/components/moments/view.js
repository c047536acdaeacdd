// @ts-check
// Moves through the training of a checkpoint. What a stop is stands there at once; Python is told where the reader
// rests. While the training is played, each stop waits for the picture of the one before.

import { clamped, isPlain, make, moveSlider, set, showSign, signButton } from "../../../../components/common/dom.js";
import { mount } from "../../../../components/common/mount.js";
import { isPage } from "../../../../components/common/streamlit-page.js";
import { say } from "../../../../components/common/i18n.js";

/** @import { Component, MomentsPayload } from "../../../../components/common/payloads.js" */

const SETTLE_MS = 200;
const PLAY_MS = 900;
const LOOK_MS = 60;

class Moments {
  /** @param {HTMLElement} root @param {AbortSignal} gone */
  constructor(root, gone) {
    set(root, { role: "group", "aria-label": say("Time in the training") });
    this.data = /** @type {MomentsPayload} */ ({ of: "", stops: [], at: 0, revision: -1 });
    this.at = 0;  // the stop that is shown here
    this.rested = "";  // what Python knows of
    this.passing = false;  // whether Python was told that more comes
    this.settling = 0;
    this.timer = 0;  // of what is played; 0 if nothing is
    this.setStateValue = (/** @type {string} */ _name, /** @type {unknown} */ _value) => {};
    this.name = make("p", "gf-moment");
    const scores = say("Training loss, loss on the dev pairs, and score on the dev pairs at that time");
    this.told = make("p", "gf-measured", "", { title: scores });
    const slides = { type: "range", min: 0, step: 1, "aria-label": say("Time in the training") };
    this.slider = make("input", "gf-slider", "", slides);
    this.back = signButton("back", say("Earlier snapshot"), () => this.turn(this.at - 1));
    this.player = signButton("play", say("Play the training"), () => (this.timer ? this.pause() : this.play()));
    this.next = signButton("next", say("Later snapshot"), () => this.turn(this.at + 1));
    this.slider.addEventListener("input", () => this.turn(Number(this.slider.value)));
    this.slider.addEventListener("keydown", (event) => {
      if (event.key !== " " || !isPlain(event)) return;
      event.preventDefault();
      this.player.click();
    });
    const bar = make("div", "gf-bar");
    bar.append(this.back, this.player, this.next, this.slider);
    root.append(this.name, bar, this.told);
    // Who goes to another address is at its snapshot.
    addEventListener("popstate", () => Object.assign(this.end(), { passing: false }), { signal: gone });
  }

  /** @param {Component<MomentsPayload>} component */
  show({ data: { payload }, setStateValue }) {
    const before = this.data;
    Object.assign(this, { data: payload, setStateValue });
    const here = before.stops[this.at]?.step;
    const moved = before.of !== payload.of || before.revision !== payload.revision;
    const kept = payload.stops.findIndex((stop) => stop.step === here);  // a training that runs has more stops by now
    if (moved) clearTimeout(this.settling);
    if (before.of !== payload.of) this.halt();
    this.at = moved || kept < 0 ? payload.at : kept;
    if (moved) this.rested = this.where();
    this.draw();
  }

  where() {
    return JSON.stringify(this.data.stops[this.at].step);
  }

  draw() {
    const { stops } = this.data, stop = stops[this.at], last = stops.length - 1;
    this.slider.max = String(last);
    moveSlider(this.slider, this.at, this.at / Math.max(last, 1), `${stop.name}. ${stop.told}`);
    this.name.textContent = stop.name;
    this.told.textContent = stop.told;
    set(this.back, { "aria-disabled": this.at === 0 });
    set(this.next, { "aria-disabled": this.at === last });
  }

  /** Go to a stop by hand. @param {number} wanted */
  turn(wanted) {
    this.halt();
    const at = clamped(wanted, this.data.stops.length);
    if (at === this.at) return;
    this.at = at;
    this.draw();
    clearTimeout(this.settling);
    this.settling = setTimeout(() => this.tell(false), SETTLE_MS);
  }

  /** @param {boolean} passing */
  tell(passing) {
    if (this.where() === this.rested && passing === this.passing) return;
    Object.assign(this, { rested: this.where(), passing });
    const { of, stops } = this.data;
    this.setStateValue("move", { of, step: stops[this.at].step, passing, when: Date.now() });
  }

  isLast() {
    return this.at === this.data.stops.length - 1;
  }

  play() {
    if (this.isLast()) this.pass(0);
    this.timer = setTimeout(() => this.onwards(), PLAY_MS);
    this.showPlaying();
  }

  /** Go to the next stop, once the picture of this one is there. */
  onwards() {
    const comes = isPage("known") && !isPage("rests");
    if (!comes) this.pass(this.at + 1);
    if (!comes && this.isLast()) this.pause();
    else this.timer = setTimeout(() => this.onwards(), comes ? LOOK_MS : PLAY_MS);
  }

  /** @param {number} wanted */
  pass(wanted) {
    clearTimeout(this.settling);
    this.at = clamped(wanted, this.data.stops.length);
    this.draw();
    this.tell(!this.isLast());
  }

  /** Play no more; what is shown is where the reader rests. */
  pause() {
    this.halt();
    if (this.passing) this.tell(false);
  }

  halt() {
    clearTimeout(this.timer);
    this.timer = 0;
    this.showPlaying();
  }

  showPlaying() {
    showSign(this.player, this.timer ? "pause" : "play", this.timer ? say("Pause") : say("Play the training"));
  }

  end() {
    clearTimeout(this.settling);
    this.halt();
    return this;
  }
}

export const component = mount({
  styles: "moments", className: "gf-moments", create: (root, gone) => new Moments(root, gone),
  show: (moments, /** @type {Component<MomentsPayload>} */ shown) => moments.show(shown),
  close: (moments) => moments.end(),
});
