"""CSS of all pages beyond the Streamlit theme: head, sidebar menu, tabs, step grid, tables, controls, phones.

The rules are constant; no data ever goes into them. A key of a run begins with its slot, so such rules name the key's
end only: `st-key-candidates` and `st-key-b-candidates` both hold "-candidates".

No rule uses `:has()` over the whole page: at every DOM change, and Plotly adds every label that it measures, the
browser would match all elements again, 10 ms each time. Rules of rooms and lessons come with them
(`extensions/rooms/room_view.py`, `extensions/classroom/panel.py`).

The page's HTML has these rules (`loading_placeholder`), so nothing is drawn without them and then moves. Knows nothing
of Streamlit but its names.
"""

from glassformer.server.streamlit_private import styled

HEAD = "page_head"
STEP_GRID = "step_grid"
GUESSING = "guessing"
CARD = "card"
COUNTED = "counted"
TABLE_BEHIND = "_table_behind"
REST = "rest_place"
BAR = "controls_bar"
SUMMARY = "sentences_summary"
TO_SENTENCE = "<style>.gf-skip { display: block; }</style>"  # where there is one, the link past the menu leads there
# Where nothing is stepped through, no room is kept for the controls of the stepper.
WITHOUT_CONTROLS = "<style>:root:root:not(.gf-present) .st-key-stepper { min-height: 0; }</style>"
# Where tabs say what the page is called, its title is for screen readers.
TITLE_IN_TABS = """<style>
.st-key-page_head > :first-child:not(.st-key-source) { position: absolute; clip-path: inset(50%); }
.st-key-page_head:not(:has(.st-key-source)) { min-height: 0; }
.st-key-page_head { --gf-corner: 0px; }
</style>"""
BLOCKS = "blocks"

RULES = styled("""
[class*="-step_grid"] {
  display: grid; gap: 0.75rem 1.5rem;
  grid-template: "candidates map" "blocks blocks" "force force" / minmax(0, 2fr) minmax(0, 3fr);
}
[class*="-step_grid"] > * { width: 100% !important; min-width: 0; }
[class*="-step_grid"] > :is([class*="-candidates"], [class*="-guessing"]) { grid-area: candidates; }
[class*="-step_grid"] > [class*="-force_choice"] { grid-area: force; }
[class*="-step_grid"] > :is(:has(> [class*="-looked_at"]), [class*="-looked_at"]) { grid-area: map; }
[class*="-step_grid"] > :is(:has(> [class*="-model_strip"]), [class*="-model_strip"]) { grid-area: blocks; }
@media (max-width: 900px) {
  [class*="-step_grid"] { grid-template: "map" "blocks" "candidates" "force" / minmax(0, 1fr); }
}
/* The menu comes after the page's frame: its place is kept, or all would move to the right. */
@media (min-width: 769px) { :root:not(.gf-present) :--skip + div { margin-left: 300px; } }
/* The app's own bar holds two buttons in the corners: the page begins beside them, not under them. */
:--header { background: none; }
:--header, :--header * { pointer-events: none; }
:--header :is(button, a, button *, a *) { pointer-events: auto; }
:--main-block { padding: 0.6rem 3.25rem 4rem clamp(1.5rem, 3vw, 4rem); max-width: 96rem; }
/* The page, the fragment of its sentence, and in that the one of its run. */
:--main-block > :--vertical,
:--main-block > * > * > :--vertical,
:--main-block > * > * > * > * > :--vertical:not([class*="st-key-"]) {
  gap: 0.6rem;
}
:root:not(.gf-present) :--sidebar:--folded ~ * :is(.st-key-tabs, .st-key-page_head) {
  padding-left: var(--gf-corner, 2rem);
}
/* What stands above the stepper's controls scrolls away, they stay. */
.st-key-stepper, [class*="-stepper"] { position: sticky; top: calc(-1 * var(--gf-above, 200vh)); z-index: 20; }
@media (min-width: 641px) { :root:not(.gf-present) .st-key-stepper { min-height: 7.8rem; } }
/* Charts take the room, lines of text do not. */
:--main-block :--markdown > p,
:--main-block :--caption p { max-width: 54rem; }
/* Streamlit's own pale letters have a contrast of 4.1 on the light page; 4.5 can be read by most. */
:--app :--caption { opacity: 0.72; }
/* Nor can white on the dark theme's green, or its parameters in lines of shell. */
:--app :is(:--primary, :--primary-submit),
:--app :--tags span {
  color: light-dark(#fff, #10161d);
}
:--code .token.variable { color: inherit; }
/* The button of the presentation stands under Streamlit's menu, which hides as the pages' does, until asked for. */
.st-key-presenter { position: fixed; z-index: 30; top: 3rem; right: 0.5rem; width: auto !important; }
:root.gf-present .st-key-presenter { top: 0.6rem; }
:root.gf-present :is(:--sidebar, :--header) { display: none; }
:root.gf-present.gf-menu-open :--sidebar {
  display: flex; position: fixed !important; inset: 0 auto 0 0; z-index: 40; transform: none !important;
  width: 20rem !important; box-shadow: 0 0 2rem rgb(0 0 0 / 35%);
}
/* A line of pages, under what they are about, and a line for the sentence. */
@media (min-width: 641px) {
  :root.gf-present.gf-menu-open :--sidebar {
    inset: 0 0 auto 0; width: calc(100% - 3.5rem) !important; max-width: none; height: auto;
  }
  :root.gf-present.gf-menu-open .st-key-page_head:has(.st-key-source) {
    position: fixed; z-index: 39; inset: 6rem 3.5rem auto 0; width: auto; padding: 0.4rem 1.5rem;
    background: light-dark(#fbfaf7, #141b23); box-shadow: 0 0 1rem rgb(0 0 0 / 25%);
  }
  :root.gf-present.gf-menu-open :is(:--side-head, :--layout:has(> .st-key-top) ~ *) { display: none; }
  :root.gf-present.gf-menu-open :--side-content { padding: 0.4rem 1.5rem; }
  :root.gf-present.gf-menu-open .st-key-top { margin: 0; }
  :root.gf-present.gf-menu-open .st-key-menu { min-height: 0; }
  :root.gf-present.gf-menu-open .st-key-menu nav { display: flex; flex-wrap: wrap; gap: 0.25rem; }
  :root.gf-present.gf-menu-open .st-key-menu hr { margin: 0.2rem 0.5rem; border: 0; border-left: 1px solid; }
  :root.gf-present.gf-menu-open .st-key-chosen { min-height: 0; flex-wrap: nowrap; align-items: center; }
  :root.gf-present.gf-menu-open .st-key-chosen > .st-key-model { padding: 0; }
  :root.gf-present.gf-menu-open .st-key-chosen > * { flex: 0 1 auto; width: auto; max-width: 20rem; }
}
:root.gf-menu-open :--fold { display: none; }
:root.gf-present :--main-block { max-width: none; }
.gf-pieces { margin: 0; line-height: 2; }
.gf-pieces span {
  padding: 0.1rem 0.4rem; border: 1px solid color-mix(in srgb, currentColor 30%, transparent); border-radius: 0.25rem;
  white-space: nowrap;
}
/* Nothing but what lies over the page: no room for it. */
.st-key-glossary_marks, .st-key-lesson_memory, [class*="rest_place"] { position: absolute; width: 0; height: 0; }
:--main-block h1 { padding: 0; font-size: 1.35rem; white-space: nowrap; }
.st-key-page_head { min-height: 2.6rem; }
.st-key-page_head > .st-key-source { min-width: 12rem; }
/* The top of the sidebar: the name and the language, the checkpoint, and the menu. */
.st-key-top { margin-top: -2.75rem; }
.st-key-chosen { min-height: 6.75rem; padding: 0 0.5rem; align-content: flex-start; column-gap: 0.5rem; }
.st-key-menu { min-height: 16rem; }
.st-key-chosen h2 { padding: 0; font-size: 1.25rem; }
.st-key-chosen > .st-key-language_choice { flex: 1 1 4rem; min-width: 0; }
.st-key-chosen > .st-key-model { flex: 1 0 100%; padding: 0.25rem 0 0.25rem; }
.st-key-chosen > :has(> .st-key-training_time_place) { flex: 1 0 100%; padding-bottom: 0.35rem; }
:root:not(.gf-present) .st-key-training_time_page { display: none; }
.st-key-chosen :--label { min-height: 0; margin-bottom: 0.1rem; }
.st-key-chosen [role="group"] { height: 2.125rem; min-height: 0; }
.st-key-chosen [role="combobox"] { font-size: 0.875rem; }
.st-key-chosen > .st-key-language_choice [role="combobox"] { padding: 0 0 0 0.5rem; }
.st-key-menu a {
  display: block; padding: 0.15rem 0.5rem; border-radius: 0.25rem; color: inherit; text-decoration: none;
  font-size: 0.875rem; line-height: 1.6;
}
.st-key-menu a:hover, .st-key-menu a[aria-current] { background: color-mix(in srgb, currentColor 9%, transparent); }
.st-key-menu a[aria-current], .st-key-tabs a[aria-current] { font-weight: 600; }
.st-key-menu hr { margin: 0.5rem; border: 0; border-top: 1px solid color-mix(in srgb, currentColor 20%, transparent); }
:is(.st-key-menu, .st-key-tabs) a:focus-visible { outline: 2px solid #e69f00; outline-offset: -2px; }
/* Pages of one entry of the menu: what is chosen there is the title of the page. */
.st-key-tabs nav { display: flex; gap: 0 1.25rem; overflow-x: auto; scrollbar-width: none; }
.st-key-tabs a {
  padding: 0.1rem 0 0.15rem; border-bottom: 2px solid transparent; color: inherit; text-decoration: none;
  font-size: 0.875rem; line-height: 1.6; white-space: nowrap;
}
.st-key-tabs a[aria-current] { border-color: #13646f; scroll-initial-target: nearest; }
.st-key-tabs:has(nav[hidden]) { display: none; }
.gf-skip {
  display: none; position: fixed; z-index: 1000000; top: 0.5rem; left: 0.5rem; padding: 0.5rem 1rem;
  border-radius: 0.25rem; background: #13646f; color: #fff; transform: translateY(-200%);
}
.gf-skip:focus { transform: none; }
/* The model as a strip: a line of blocks for each stack, the shown one filled. */
[class*="-blocks_encoder"] { --lane: #0b6fa4; }
[class*="-blocks_decoder"] { --lane: #b4560a; }
[class*="-blocks_"] { gap: 0.25rem 1.1rem; }
[class*="-model_strip"] [class*="-controls_bar"] { min-height: 2.125rem; }
[class*="-blocks_"] :is(p, :--markdown) { margin: 0; }
[class*="-blocks_"] button {
  position: relative; min-height: 1.9rem; padding: 0 0.6rem;
  border: 1px solid color-mix(in srgb, var(--lane) 55%, transparent);
  background: color-mix(in srgb, var(--lane) 7%, transparent);
}
[class*="-blocks_"] :is(:--primary) { background: var(--lane); color: #fff; }
[class*="-blocks_"] > :not(:first-child, :last-child) button::after {
  content: "→"; position: absolute; right: -1rem; opacity: 0.7; color: var(--lane);
}
/* Streamlit pales what unfolds without a frame, below the contrast that most can read. */
:--expander summary { opacity: 1 !important; }
.st-key-decoding { margin-top: -1.4rem; }
.st-key-decoding_alone .st-key-decoding { margin-top: 0.25rem; }
.st-key-intro p { font-size: 0.95rem; }
:root.gf-present .st-key-intro { display: none; }
/* What is presented is the picture: the sentence's box comes with the menu, over the page as that does. */
:root.gf-present:not(.gf-menu-open) .st-key-page_head:has(.st-key-source) { display: none; }
:root.gf-present .st-key-tabs { margin-bottom: -1.1rem; }
:root.gf-present :--main-block { padding-top: 0.2rem; }
.gf-ways { display: flex; flex-wrap: wrap; gap: 0.4rem 0.6rem; }
.gf-ways a {
  padding: 0.3rem 0.75rem; border: 1px solid color-mix(in srgb, currentColor 25%, transparent); border-radius: 0.5rem;
  color: inherit; text-decoration: none; font-size: 0.875rem; line-height: 1.4;
}
.gf-ways a:hover { background: color-mix(in srgb, currentColor 9%, transparent); }
.gf-ways a:focus-visible { outline: 2px solid #e69f00; outline-offset: 2px; }
[class*="_table_behind"] { display: none; }
:--still-table tbody th { min-width: 5rem; } /* else Chinese names of rows stand one character to a line */
[class*="-result_choice"] :--radio { display: flex; column-gap: 1.25rem; align-items: baseline; }
[class*="-result_choice"] :--label { flex: none; }
[class*="-branch_choice"] :--label { min-height: 0; margin-bottom: 0.1rem; }
/* Chips: as high as a line of controls. */
[class*="-changes"] button { height: auto; min-height: 2.125rem; max-width: 100%; padding: 0 0.6rem; }
[class*="-changes"] button :is(div, span, p) {
  overflow: visible; text-overflow: clip; white-space: normal;
}
/* Tables wrap their text at 400 px otherwise, however wide they are. */
.st-key-card td :--markdown, .st-key-counted td :--markdown {
  max-width: none; white-space: normal;
}
.st-key-card td p, .st-key-counted td:last-child p { overflow-wrap: anywhere; }
.st-key-card :is(td, th):first-child :is(div, p) { white-space: nowrap !important; }
/* Chinese has no slanted letters: what would be slanted is heavy, comments of code stand upright. */
:lang(zh) em { font-style: normal; font-weight: 600; }
:lang(zh) code .comment { font-style: normal !important; }
/* Nor words with spaces between them: else one character may stand alone in the last line. */
:lang(zh) :is(h2, h3, [class*="st-key-block_"] a p) { text-wrap: balance; }
.katex .cjk_fallback {
  font-family: "PingFang SC", "Microsoft YaHei", "Noto Sans SC", "Noto Sans CJK SC", sans-serif;
}
/* Numbers of many lines stand in one row where there is room. */
.st-key-sentences_summary { gap: 0.25rem 1.75rem; }
.st-key-sentences_summary :--metric { font-size: 1.25rem; line-height: 1.4; }
.st-key-sentences_summary :--metric-label p { font-size: 0.8125rem; }
/* A row of controls is one line high: its segments are narrower, its menus and its button no higher than they. */
[class*="-controls_bar"] { column-gap: 0.25rem; row-gap: 0.375rem; }
[class*="-controls_bar"] :is(:--select [role="group"], :--popover-button) {
  height: 2.125rem; min-height: 0;
}
/* A menu is as wide as what is chosen in it, where the row has room; what is longer is cut visibly. */
[role="combobox"] { text-overflow: ellipsis; }
@media (min-width: 641px) {
  :--main [role="combobox"], [class*="-controls_bar"] input { field-sizing: content; }
  :--main :--sized:has(> :--select),
  [class*="-controls_bar"] :--element:has(> :is(:--number, :--text)) {
    flex: 0 0 auto; width: max-content; max-width: 13rem; min-width: min(100%, attr(width type(*), 0px));
  }
  :root.gf-present :--main :--element:has(> :--select) {
    max-width: 100%;
  }
}
[class*="-mask_cell"] > [class*="-mask_verdict"] { min-width: 20rem; }
[class*="-controls_bar"] [role="combobox"] { height: 2rem; padding-right: 0; padding-left: 0.5rem; }
[class*="-controls_bar"] :--select button { height: 2rem; }
[class*="-controls_bar"] [role="radiogroup"] button { min-height: 2.125rem; padding: 0 0.3rem; }
[class*="-controls_bar"] :--popover-button { min-width: 3.25rem; padding: 0 0.3rem; }
/* Two charts beside each other need more room than the sidebar leaves in a small window. */
@media (max-width: 960px) {
  :--main :--horizontal { flex-wrap: wrap; }
  :--main :--horizontal:has(> :--column) { row-gap: 1rem; }
  :--main :--column { min-width: calc(100% - 1.5rem); }
}
@media (max-width: 900px) and (min-width: 641px) { .st-key-page_head > :has(h1) { flex: 1 0 100% !important; } }
/* What scrolls under the two buttons in the corners is not read through them. */
:--header :is(:--unfold, :--main-menu) {
  border-radius: 0.25rem; background: light-dark(#fbfaf7, #141b23);
}
/* On a telephone the head is one row, into which what is rarely wanted is folded, the stepper's controls stand at the
   foot of the window, and a page's are one row that slides. Who follows a class there has no box to type into. */
.st-key-page_head > :has(.gf-more) { display: none; }
@media (max-width: 640px) {
  :root .st-key-training_time_page.st-key-training_time_page { display: block; }
  :--main-block { padding: 0.4rem 1rem 5rem; }
  .st-key-stepper { --gf-foot: fixed; --gf-side: 0.75rem; position: static; }
  :--main-block h1 { font-size: 1.15rem; }
  .st-key-page_head { padding-right: 2.25rem; }
  .st-key-page_head:has(.st-key-source) { gap: 0.4rem; }
  .st-key-page_head:has(.st-key-source) h1 {
    max-width: 7.25rem; font-size: 1rem; line-height: 1.15; white-space: normal; text-wrap: balance;
  }
  .st-key-page_head:has(.st-key-source :focus) > :has(h1) { display: none; }
  .st-key-page_head > .st-key-source { flex: 1 1 40%; min-width: 0; }
  .st-key-page_head > :has(.gf-more) { display: block; flex: none; }
  .st-key-page_head:has(.st-key-source)::after {
    content: ""; flex: 0 0 100%; height: 0; margin-top: -0.4rem; order: 1;
  }
  .st-key-page_head > :is(.st-key-translate, .st-key-what_if, .st-key-example_menu) { order: 2; }
  .st-key-page_head:not(:has(.gf-more[open])) > :is(.st-key-translate, .st-key-what_if, .st-key-example_menu),
  .st-key-page_head:not(:has(.gf-more)) > .st-key-source { display: none; }
  .gf-more summary {
    display: grid; place-items: center; width: 2.25rem; height: 2.5rem; border-radius: 0.5rem; cursor: pointer;
    border: 1px solid color-mix(in srgb, currentColor 25%, transparent); list-style: none;
  }
  .gf-more summary::-webkit-details-marker { display: none; }
  .gf-more[open] summary { background: color-mix(in srgb, currentColor 9%, transparent); }
  :--main [class*="controls_bar"] { flex-wrap: nowrap; }
  /* What slides fades at both ends, and begins after the fading. */
  [class*="controls_bar"], .st-key-tabs nav {
    overflow-x: auto; scrollbar-width: none; margin: -2px -2px -2px -0.75rem; padding: 2px 1.5rem 2px 0.75rem;
    scroll-padding: 0 1.5rem 0 0.75rem;
    mask-image: linear-gradient(to right, transparent, #000 0.75rem calc(100% - 1.5rem), transparent);
  }
  .st-key-tabs { --gf-corner: 2.25rem; padding-right: 2.5rem; }
  .st-key-tabs nav { column-gap: 1rem; padding-right: 1rem; }
  [class*="controls_bar"] > *, [class*="controls_bar"] [role="radiogroup"] > * {
    flex: none !important; max-width: none;
  }
  /* A menu ends in sight: its arrow, and that something comes after it. */
  [class*="controls_bar"] > :--element:has(> :--select) { max-width: 75vw; }
  [class*="controls_bar"] > :--sized:has(> :--select) {
    width: max-content; min-width: min(75vw, attr(width type(*), 0px));
  }
  [class*="controls_bar"] [role="combobox"] { field-sizing: content; }
  [class*="controls_bar"] [role="radiogroup"] { flex-wrap: nowrap; width: max-content; max-width: none; }
  [class*="controls_bar"] [aria-checked="true"] { scroll-initial-target: nearest; }
  /* What can be done with a head comes after its picture, as do the menus of what can be clicked in one. */
  :--layout:has(> [class*="of_head"]) { order: 1; }
}
""")
