// @ts-check
// What the tests of our modules are written with. `test_javascript.py` runs them in a browser.

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
