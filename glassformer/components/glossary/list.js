// @ts-check
// All terms of the glossary, with a field to search in and a link to where each is seen.

import { isPlain, make, set } from "../common/dom.js";
import { openInPlace } from "../common/streamlit-page.js";
import { mount } from "../common/mount.js";
import { sayN, say, spoken } from "../common/i18n.js";

/** @import { Component, GlossaryListPayload, ListedTerm } from "../common/payloads.js" */

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

class Glossary {
  /** @param {HTMLElement} root */
  constructor(root) {
    const [tools, what] = [make("div", "gf-glossary-tools"), say("Find a term")];
    this.search = make("input", "gf-glossary-search", "", { type: "search", placeholder: what, "aria-label": what });
    this.count = make("span", "gf-glossary-count", "", { "aria-live": "polite" });
    this.list = make("dl", "gf-glossary-list");
    /** @type {Map<string, HTMLElement>} */
    this.entries = new Map();
    this.said = this.chosen = "";
    tools.append(this.search, this.count);
    root.append(tools, this.list);
    this.search.addEventListener("input", () => this.sift());
  }

  /** @param {Component<GlossaryListPayload>} component */
  show({ data: { payload: { terms, chosen } }, setStateValue }) {
    this.follow = (/** @type {string} */ id) => setStateValue("term", id);
    const said = JSON.stringify(terms);
    const isNew = said !== this.said;
    if (isNew) {
      const order = new Intl.Collator(spoken());
      const sorted = terms.toSorted((one, other) => order.compare(one.name, other.name));
      this.entries = new Map(sorted.map((term) => [term.id, this.entry(term)]));
      this.list.replaceChildren(...this.entries.values());
      this.said = said;
      this.sift();
    }
    if (isNew || chosen !== this.chosen) this.choose(chosen);
  }

  /** @param {ListedTerm} term */
  entry({ id, name, text, also, place, address }) {
    const row = make("div", "gf-glossary-entry");
    row.dataset.found = [name, also, text, place].join(" ").toLocaleLowerCase();
    const [title, where] = [make("dt"), make("dd")];
    title.append(link(name, `?term=${encodeURIComponent(id)}`, () => this.follow?.(id)));
    if (place && address) where.append(link(place, address, () => openInPlace(address)));
    row.append(title, make("dd", "", text), where);
    return row;
  }

  /** Show the entries that hold what is searched for: in a name, the definition, or where it is seen. */
  sift() {
    const wanted = this.search.value.trim().toLocaleLowerCase();
    let n = 0;
    for (const row of this.entries.values()) {
      row.hidden = !row.dataset.found?.includes(wanted);
      n += Number(!row.hidden);
    }
    this.count.textContent = sayN("{n} term", "{n} terms", n);
  }

  /** @param {string} chosen */
  choose(chosen) {
    this.chosen = chosen;
    for (const [id, row] of this.entries) set(row, { "aria-current": id === chosen });
    const row = this.entries.get(chosen);
    if (!row) return;
    if (row.hidden) {
      this.search.value = "";
      this.sift();
    }
    row.scrollIntoView({ block: "nearest" });
  }
}

export const component = mount({
  styles: "glossary", className: "gf-glossary", create: (root) => new Glossary(root),
  show: (glossary, /** @type {Component<GlossaryListPayload>} */ shown) => glossary.show(shown),
});
