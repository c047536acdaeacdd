"""How the start page looks: blocks as cards in a row for each stack, source blue and target orange.

The rules are fixed text of ours; no data ever goes into them. The colours are thin enough to suit both themes.
"""

from glassformer.components.streamlit_page import styled
from glassformer.shared.door import st
from glassformer.start.thumbnails import MOST_STEPS

_RULES = """
.st-key-examples { row-gap: 0.375rem; column-gap: 0.5rem; }
.st-key-examples button {
  min-height: 2rem; padding: 0 0.7rem; border: 1px solid rgb(128 128 128 / 35%) !important; border-radius: 1rem;
}
.st-key-examples button p { font-size: 0.875rem; }
.st-key-start_diagram { gap: 0.55rem; margin-top: 0.25rem; }
.st-key-start_diagram :is(:--markdown, :--caption) {
  margin-bottom: 0;
}
[class*="st-key-lane_encoder"] { --lane: 40 140 200; }
[class*="st-key-lane_decoder"] { --lane: 220 112 30; }
[class*="st-key-lane_"] { gap: 0.25rem; }
.st-key-start_diagram :is(:--caption, :--markdown) p {
  margin: 0; max-width: none;
}
.st-key-lane_head_encoder, .st-key-lane_head_decoder { gap: 0.75rem; row-gap: 0.25rem; }
[class*="st-key-pieces_"] { flex: 0 1 auto; min-width: 0; max-height: 3.6rem; overflow-y: auto; }
[class*="st-key-pieces_"] :--badge { font-family: monospace; font-size: 0.85rem; margin-right: 0.1rem; }
@media (min-width: 641px) { .st-key-page_head h1 { font-size: 1.75rem !important; } }
[class*="st-key-text_"] p {
  font-family: "Source Serif", "PingFang SC", "Microsoft YaHei", "Noto Sans SC", "Noto Sans CJK SC", serif;
  font-size: 1.15rem;
}
.st-key-handed_over p { text-align: right; padding-right: 37%; }
[class*="st-key-lane_blocks_"], [class*="st-key-lane_layers_"] {
  display: flex; flex-flow: row nowrap; gap: 1.15rem; align-items: stretch; width: 100%;
}
[class*="st-key-lane_layers_"] {
  padding: 0.45rem 0.15rem 0.45rem 0.45rem; border: 1px dashed rgb(var(--lane) / 55%); border-radius: 0.5rem;
  position: relative; min-width: 0; width: auto !important;
}
:--layout:has(> [class*="st-key-block_"]) {
  display: flex; flex: 1 1 0 !important; min-width: 0;
}
:--layout:has(> .st-key-lane_layers_encoder) { flex: 2 1 0 !important; min-width: 0; }
:--layout:has(> .st-key-lane_layers_decoder) { flex: 4.6 1 0 !important; min-width: 0; }
[class*="st-key-lane_layers_"] > :--element {
  width: 3.1rem !important; flex: none; align-self: center; text-align: center; margin-left: -0.9rem;
}
[class*="st-key-block_"] {
  position: relative; padding: 0.55rem 0.65rem; gap: 0.3rem !important; border-radius: 0.4rem;
  border: 1px solid rgb(var(--lane) / 55%);
  background: rgb(var(--lane) / 6%); justify-content: space-between; flex: 1 1 auto; min-width: 0;
}
[class*="st-key-block_"]:hover { background: rgb(var(--lane) / 14%); border-color: rgb(var(--lane)); }
[class*="st-key-block_"]:focus-within { outline: 2px solid rgb(var(--lane)); outline-offset: 1px; }
[class*="st-key-block_"]::before {
  content: "→"; position: absolute; left: -1.12rem; top: calc(50% - 0.75em); opacity: 0.55;
}
[class*="st-key-block_"][class*="_embedding"]::before { content: none; }
[class*="st-key-lane_layers_"] > :first-child [class*="st-key-block_"]::before { left: -1.6rem; }
[class*="st-key-block_"] * { position: static !important; }
[class*="st-key-block_"] a { padding: 0; margin: 0; background: none !important; }
[class*="st-key-block_"] a::after { content: ""; position: absolute; inset: 0; }
[class*="st-key-block_"] a span { white-space: normal; overflow: visible; }
[class*="st-key-block_"] a p { font-weight: 600; font-size: 0.95rem; line-height: 1.3; white-space: normal; }
[class*="st-key-block_"] :--caption p { font-size: 0.8rem; line-height: 1.3; }
[class*="st-key-lane_layers_"] [class*="st-key-block_"] { padding: 0.5rem; }
[class*="st-key-lane_layers_"] :--caption p { font-size: 0.75rem !important; }
.st-key-ways { gap: 0.75rem; margin-top: 0.25rem; }
.st-key-ways :--element { width: auto !important; flex: 1 1 0 !important; }
.st-key-ways a {
  padding: 0.55rem 0.8rem; border: 1px solid rgb(128 128 128 / 40%); border-radius: 0.4rem; justify-content: center;
}
.st-key-ways a p { font-weight: 600; }
@media (max-width: 900px) {
  [class*="st-key-lane_blocks_"], [class*="st-key-lane_layers_"] { flex-wrap: wrap; gap: 0.5rem; }
  :--layout:has(> [class*="st-key-block_"]) { flex: 1 1 8.5rem !important; }
  :--layout:has(> [class*="st-key-lane_layers_"]) { flex: 1 1 100% !important; }
  [class*="st-key-block_"]::before { content: none; }
  [class*="st-key-lane_layers_"] > :--element { width: 100% !important; margin: 0; }
  .st-key-examples { flex-wrap: nowrap; overflow-x: auto; padding-bottom: 0.25rem; }
  .st-key-examples > * { flex-shrink: 0; }
  .st-key-examples button :is(:--markdown, p) { white-space: normal; }
  .st-key-handed_over p { text-align: left; padding: 0; }
  .st-key-ways { flex-direction: column; }
}
.gf-of-source { --lane: 40 140 200; }
.gf-cells {
  display: grid; grid-template-columns: repeat(var(--columns), minmax(2px, 1fr)); gap: 1px; height: 2.1rem;
  max-width: calc(var(--columns) * 0.9rem);
}
.gf-cells i { background: rgb(var(--lane)); opacity: calc(0.07 + 0.93 * var(--v)); min-height: 0; }
.gf-cells i.gf-closed {
  background: repeating-linear-gradient(45deg, rgb(128 128 128 / 80%) 0 1px, transparent 1px 4px); opacity: 1;
}
.gf-bars { display: grid; height: 3rem; font-size: 0.75rem; line-height: 1rem; }
.gf-frame {
  grid-area: 1 / 1; display: grid; grid-template-columns: minmax(0, 1fr) auto; column-gap: 0.25rem; opacity: 0;
}
.gf-frame.gf-at-rest { opacity: 1; }
.gf-frame span {
  white-space: nowrap; overflow: hidden; font-family: monospace;
  background: linear-gradient(rgb(var(--lane) / 45%) 0 0) no-repeat 0 60% / calc(var(--p) * 100%) 75%;
}
.gf-frame b { font-weight: 400; font-variant-numeric: tabular-nums; }
@media (prefers-reduced-motion: no-preference) {
  .gf-passing i { animation: gf-come 0.3s ease-out calc(var(--n, 0) * 0.35s) backwards; }
  .gf-passing .gf-frame { animation: gf-show 0.35s step-end calc(var(--n) * 0.35s); }
  .gf-passing .gf-frame.gf-at-rest { animation: gf-wait calc(var(--n) * 0.35s) step-end; }
  [class*="st-key-pieces_decoder"]:not([class*="_guess"]) > :last-child :--badge {
    animation: gf-come 0.3s ease-out backwards;
  }
}
@keyframes gf-come { from { opacity: 0; } }
@keyframes gf-show { from, to { opacity: 1; } }
@keyframes gf-wait { from, to { opacity: 0; } }
"""

_PIECE = '[class*="st-key-pieces_decoder"] > :last-child :--badge'


def apply() -> None:
    """Put the rules into the page; those that say when a piece comes are one for each step of the pass."""
    late = [
        f"{_PIECE}:nth-of-type(n + {n + 1}) {{ animation-delay: {n * 0.35:.2f}s; }}" for n in range(MOST_STEPS + 1)
    ]
    st.html(styled(f"<style>{_RULES}{''.join(late)}</style>"))
