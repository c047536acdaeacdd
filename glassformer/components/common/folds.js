// @ts-check
// Groups of the menu that a reader folds or unfolds stay so while the page is shown, though every step draws the menu anew.

const MENU = ".st-key-menu";

/** @type {Map<string, boolean>} whether each group that was pressed is open, by its name */
const pressed = new Map();
let page = "";

/** @param {Event} event */
function remember({ target }) {
  const summary = target instanceof Element ? target.closest(`${MENU} summary`) : null;
  const group = summary?.parentElement;
  // The click opens or closes it after we have heard of it.
  if (group instanceof HTMLDetailsElement) pressed.set(summary?.textContent ?? "", !group.open);
}

function restore() {
  if (location.pathname !== page) {
    page = location.pathname;
    pressed.clear();  // the page's own group is open, and no other
  }
  for (const group of document.querySelectorAll(`${MENU} details`)) {
    const open = pressed.get(group.querySelector("summary")?.textContent ?? "");
    if (group instanceof HTMLDetailsElement && open !== undefined && group.open !== open) group.open = open;
  }
}

/** @param {AbortSignal} signal ends it */
export function keepFolds(signal) {
  page = location.pathname;
  const watching = new MutationObserver((changes) => {
    if (changes.some(({ target }) => target instanceof Element && target.closest(MENU))) restore();
  });
  watching.observe(document.body, { childList: true, subtree: true });
  document.addEventListener("click", remember, { capture: true, signal });
  signal.addEventListener("abort", () => watching.disconnect());
}
