// @ts-check
// Whether a key is meant for the presentation, or for what has the focus.

const WRITTEN = "textarea, select, [contenteditable]:not([contenteditable='false']), [role='textbox'], [role='combobox']";
/** Inputs that take no letters. */
const CHOSEN = new Set(["button", "checkbox", "color", "file", "image", "radio", "range", "reset", "submit"]);
const OPEN = "[role='dialog'], [role='menu'], [role='listbox'][data-testid], [data-baseweb='popover']";

/** @param {EventTarget | undefined} at */
function takesLetters(at) {
  if (at instanceof HTMLInputElement) return !CHOSEN.has(at.type);
  return at instanceof Element && at.closest(WRITTEN) !== null;
}

/** @param {KeyboardEvent} event */
function isFree(event) {
  return !event.defaultPrevented && !event.isComposing && !event.repeat
    && !event.ctrlKey && !event.altKey && !event.metaKey && !takesLetters(event.composedPath()[0]);
}

/**
 * Whether a key begins or ends the presentation.
 * @param {KeyboardEvent} event
 */
export function togglesIt(event) {
  return event.key.toLowerCase() === "p" && isFree(event);
}

/**
 * Whether a key ends it: Escape, where nothing is open that it would close.
 * @param {KeyboardEvent} event
 */
export function endsIt(event) {
  if (event.key !== "Escape" || !isFree(event)) return false;
  if (event.composedPath().some((node) => node instanceof HTMLDialogElement)) return false;
  return !Array.from(document.querySelectorAll(OPEN)).some((element) => element.getClientRects().length > 0);
}
