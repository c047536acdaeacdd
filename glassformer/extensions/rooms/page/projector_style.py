"""How a room looks: its line at the foot of every page, and its projector view, as large as the window allows.

The rules are fixed text of ours; no data ever goes into them.
"""

from glassformer.components.streamlit_page import styled

RULES = """
<style>
.gf-wall { line-height: 1.2; }
.gf-wall p { margin: 0; }
.gf-wall-address { font-size: clamp(1.2rem, 3vw, 5.4vh); opacity: 0.85; overflow-wrap: anywhere; }
.gf-wall-code { font-family: monospace; font-weight: 700; letter-spacing: 0.12em; }
.gf-wall-alone .gf-wall-address { font-size: clamp(1.4rem, 4vw, 7vh); padding-top: 3vh; }
.gf-wall-alone .gf-wall-code { font-size: min(24cqw, 44vh); line-height: 1.15; letter-spacing: 0.06em; }
.gf-join { width: 100%; min-width: 7rem; max-width: 14rem; image-rendering: pixelated; border-radius: 0.25rem; }
.gf-wall-alone { display: grid; gap: 0 4vw; grid-template-columns: minmax(0, 1fr) min(34vw, 62vh); }
.gf-wall-alone { align-items: center; }
.gf-wall-alone > div { container-type: inline-size; }
.gf-wall-qr { width: 100%; image-rendering: pixelated; border-radius: 0.5rem; }
.gf-wall-choices { display: flex; gap: 3vw; justify-content: space-between; align-items: flex-start; }
.gf-wall-choices > .gf-wall-qr { width: min(24vw, 42vh); flex: none; }
.gf-wall-asked { display: flex; flex-wrap: wrap; gap: 0 2rem; align-items: baseline; }
.gf-wall-asked .gf-wall-code { font-size: clamp(1.6rem, 3.6vw, 6vh); }
.gf-wall-question { font-size: clamp(1.4rem, 3.4vw, 6.2vh); font-weight: 600; padding: 0.4em 0; }
.gf-wall-few { font-size: clamp(1.2rem, 2.6vw, 4.8vh); opacity: 0.85; padding-bottom: 0.4em; }
.gf-wall ul { font-size: clamp(1.2rem, 3vw, 5.6vh); padding: 0; margin: 0 0 0.3em; list-style: none; }
.gf-wall .gf-wall-list { font-size: clamp(1.2rem, 3.6vw, 6.8vh); }
.gf-wall li { padding: 0.12em 0; margin: 0; font-size: inherit; }
.gf-wall li.gf-wall-right { font-weight: 700; }
.gf-wall .gf-wall-row { display: flex; gap: 0 1.5em; font-size: clamp(2rem, 7vw, 13vh); font-weight: 700; }
@media (max-width: 640px) { .gf-wall-alone { grid-template-columns: minmax(0, 1fr); } }
</style>
"""
NO_FEET = "<style>.gf-foot { display: none; }</style>"  # of charts, on the wall
# `--gf-room` is how high the line is (`extensions/rooms/components/room/view.js`); nothing lies under it.
BAR_RULES = styled("""
<style>
.st-key-room_bar { position: fixed; z-index: 999991; bottom: 0.5rem; left: 0.5rem; width: 17.75rem !important; }
:root.gf-present .st-key-room_bar { width: auto !important; }
:--app { --gf-under: var(--gf-room, 3rem); }
:--app :--sidebar-content { padding-bottom: calc(var(--gf-room, 5rem) + 1rem); }
:--app :--main-block { padding-bottom: max(4rem, calc(var(--gf-room, 3rem) + 1.5rem)); }
@media (max-width: 1100px) {
  :--app .st-key-lesson_panel { bottom: calc(var(--gf-room, 3rem) + 0.75rem); }
}
@media (min-width: 769px) and (max-width: 1100px) {
  :root:not(.gf-present) :--sidebar:--unfolded ~ * .st-key-lesson_panel { bottom: 0; }
}
@media (max-width: 640px) {
  .st-key-room_bar, :root.gf-present .st-key-room_bar { bottom: 0; left: 0; width: 100vw !important; }
  :--app :--main-block { padding-bottom: calc(var(--gf-room, 3rem) + 5rem); }
  :--app .st-key-lesson_panel { bottom: var(--gf-room, 3rem); }
}
</style>
""")
