// @ts-check
// Keys and clicks, as all components take them.

/**
 * Whether an event comes without a key that gives it another meaning.
 * @param {KeyboardEvent | MouseEvent} event
 */
export function isPlain({ ctrlKey, altKey, metaKey }) {
  return !ctrlKey && !altKey && !metaKey;
}

/**
 * The place that is wanted, or the last one that there is that way.
 * @param {number} wanted
 * @param {number} count of the places, which are counted from 0
 */
export function clamped(wanted, count) {
  return Math.max(0, Math.min(wanted, count - 1));
}
