// @ts-check
// All terms of the glossary, with a field to search in and a link to where each is seen.

import { isPlain, make, set } from "../common/dom.js";
import { openInPlace } from "../common/streamlit-page.js";
import { mount } from "../common/mount.js";
import { sayN, say, spoken } from "../common/i18n.js";

/** @import { Component, Create, GlossaryListPayload, ListedTerm, Show } from "../common/payloads.js" */

/**
 * @typedef {object} View
 * @property {HTMLInputElement} search
 * @property {HTMLElement} count
 * @property {HTMLElement} list
 * @property {Map<string, HTMLElement>} entries
 * @property {string} said
 * @property {string | null} chosen
 * @property {Component<GlossaryListPayload>} [component]
 */

/** @type {Create<View>} */
function create(root) {
  const [tools, list] = [make("div", "gf-glossary-tools"), make("dl", "gf-glossary-list")];
  const what = say("Find a term");
  const search = make("input", "gf-glossary-search", "", { type: "search", placeholder: what, "aria-label": what });
  const count = make("span", "gf-glossary-count", "", { "aria-live": "polite" });
  tools.append(search, count);
  root.append(tools, list);
  /** @type {View} */
  const view = { search, count, list, entries: new Map(), said: "", chosen: null };
  search.addEventListener("input", () => sift(view));
  return view;
}

/**
 * A link that this page follows itself; opened in another tab it leads to the same.
 * @param {string} text @param {string} address @param {() => void} follow
 */
function link(text, address, follow) {
  const element = make("a", "", text);
  element.href = address;
  element.addEventListener("click", (event) => {
    if (!isPlain(event) || event.shiftKey) return;
    event.preventDefault();
    follow();
  });
  return element;
}

/** @param {View} view @param {ListedTerm} term */
function entry(view, { id, name, text, also, place, address }) {
  const row = make("div", "gf-glossary-entry");
  row.dataset.found = [name, also, text, place].join(" ").toLocaleLowerCase();
  const [title, where] = [make("dt"), make("dd")];
  title.append(link(name, `?term=${encodeURIComponent(id)}`, () => view.component?.setStateValue("term", id)));
  if (place && address) where.append(link(place, address, () => openInPlace(address)));
  row.append(title, make("dd", "", text), where);
  return row;
}

/**
 * Show the entries that hold what is searched for: in a name, the definition, or where it is seen.
 * @param {View} view
 */
function sift({ search, entries, count }) {
  const wanted = search.value.trim().toLocaleLowerCase();
  let n = 0;
  for (const row of entries.values()) {
    row.hidden = !row.dataset.found?.includes(wanted);
    n += Number(!row.hidden);
  }
  count.textContent = sayN("{n} term", "{n} terms", n);
}

/** @type {Show<View, GlossaryListPayload>} */
function show(view, component) {
  const { terms, chosen } = component.data.payload;
  view.component = component;
  const said = JSON.stringify(terms);
  if (said !== view.said) {
    const order = new Intl.Collator(spoken());
    const sorted = terms.toSorted((one, other) => order.compare(one.name, other.name));
    view.entries = new Map(sorted.map((term) => [term.id, entry(view, term)]));
    view.list.replaceChildren(...view.entries.values());
    view.said = said;
    view.chosen = null;
    sift(view);
  }
  if (chosen !== view.chosen) choose(view, chosen);
}

/** @param {View} view @param {string} chosen */
function choose(view, chosen) {
  view.chosen = chosen;
  for (const [id, row] of view.entries) set(row, { "aria-current": id === chosen });
  const row = view.entries.get(chosen);
  if (!row) return;
  if (row.hidden) {
    view.search.value = "";
    sift(view);
  }
  row.scrollIntoView({ block: "nearest" });
}

export const component = mount({ styles: "glossary", className: "gf-glossary", create, show });
