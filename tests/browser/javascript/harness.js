// @ts-check
// What the tests of our modules are written with. `test_javascript.py` runs them in a browser.

import { make } from "../../../glassformer/components/common/dom.js";

/** @type {Map<string, () => unknown>} */
export const tests = new Map();

/**
 * A test; its name is its sentence, and stands in double quotes at the beginning of a line.
 * @param {string} name
 * @param {() => unknown} run
 */
export function test(name, run) {
  if (tests.has(name)) throw new Error(`two tests are called "${name}"`);
  tests.set(name, run);
}

/**
 * Lists and records are compared by what they hold.
 * @param {unknown} found
 * @param {unknown} expected
 */
export function equal(found, expected) {
  const [one, other] = [found, expected].map((value) => JSON.stringify(plain(value)));
  if (one !== other) throw new Error(`found ${one}, expected ${other}`);
}

/**
 * @param {number} found
 * @param {number} expected
 * @param {number} [within]
 */
export function close(found, expected, within = 1e-9) {
  const near = Math.abs(found - expected) <= within;
  if (!near) throw new Error(`found ${found}, expected ${expected} within ${within}`);
}

/**
 * Bytes as Python sends them.
 * @param {ArrayBufferView} numbers
 */
export function base64(numbers) {
  const bytes = new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength);
  return btoa(String.fromCharCode(...bytes));
}

/**
 * Wait until what is read is as expected, as what follows a timer or a drawing is in its own time.
 * @param {() => unknown} read @param {unknown} expected
 */
export async function comesTo(read, expected) {
  const end = performance.now() + 20_000;
  const same = () => JSON.stringify(plain(read())) === JSON.stringify(plain(expected));
  while (!same() && performance.now() < end) await new Promise((resolve) => { setTimeout(resolve, 10); });
  equal(read(), expected);
}

/** Wait until timers that are due have had their turn. @param {number} [ms] */
export const wait = (ms = 5) => new Promise((resolve) => { setTimeout(resolve, ms); });

/**
 * A component in a shadow tree, as Streamlit has it on a page, and what Python is told.
 * @template Payload
 * @param {(component: any) => () => void} component
 * @param {Payload} payload
 */
export function placed(component, payload, background = "#ffffff") {
  /** @type {[name: string, value: any][]} */
  const told = [];
  const [host, parent] = [make("div"), make("div")];
  host.style.setProperty("--st-background-color", background);
  host.attachShadow({ mode: "open" }).append(parent);
  document.body.append(host);
  const hear = (/** @type {string} */ name, /** @type {unknown} */ value) => { told.push([name, value]); };
  let end = () => {};
  const show = (/** @type {Partial<Payload>} */ change = {}) => {
    end = component({ data: { payload: { ...payload, ...change } }, parentElement: parent,
      setStateValue: hear, setTriggerValue: hear });
  };
  const leave = async () => {
    host.remove();
    end();
    await wait();
  };
  /** @type {(selector: string) => any[]} */
  const all = (selector) => Array.from(parent.querySelectorAll(selector));
  const texts = (/** @type {string} */ selector) => all(selector).map((one) => one.textContent);
  show();
  return { told, host, show, leave, all, texts, one: (/** @type {string} */ selector) => all(selector)[0] };
}

/** The file that something saves, once it is made. @param {() => void} act @returns {Promise<Blob>} */
export function saving(act) {
  const { click } = HTMLAnchorElement.prototype;
  return new Promise((resolve) => {
    HTMLAnchorElement.prototype.click = function () {
      HTMLAnchorElement.prototype.click = click;
      fetch(this.href).then((file) => file.blob()).then(resolve);
    };
    act();
  });
}

/** What has the focus, down through shadow trees. @returns {any} */
export function focused() {
  let at = document.activeElement;
  while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement;
  return at;
}

/**
 * Press a key where the focus is.
 * @param {string} key @param {KeyboardEventInit} [more]
 */
export function press(key, more = {}) {
  focused().dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, composed: true, cancelable: true, ...more }));
}

/**
 * As JSON can hold it, with what JSON would lose as text.
 * @param {any} value
 * @returns {any}
 */
function plain(value) {
  if (value === undefined || (typeof value === "number" && !Number.isFinite(value))) return String(value);
  if (ArrayBuffer.isView(value)) return Array.from(/** @type {any} */ (value), plain);
  if (Array.isArray(value)) return value.map(plain);
  if (value && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).sort().map(([name, entry]) => [name, plain(entry)]));
  }
  return value;
}
