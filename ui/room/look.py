"""How the projector view of a room looks: as large as the window allows.

The rules are fixed text of ours; no data ever goes into them.
"""

from __future__ import annotations

RULES = """
<style>
.gf-wall { line-height: 1.2; }
.gf-wall p { margin: 0; }
.gf-wall-address { font-size: clamp(1.2rem, 2.6vw, 4.2vh); opacity: 0.85; overflow-wrap: anywhere; }
.gf-wall-code { font-family: monospace; font-weight: 700; letter-spacing: 0.12em; }
.gf-wall-alone .gf-wall-code { font-size: min(15vw, 34vh); line-height: 1.15; }
.gf-wall-asked { display: flex; flex-wrap: wrap; gap: 0 2rem; align-items: baseline; }
.gf-wall-asked .gf-wall-code { font-size: clamp(1.6rem, 3.6vw, 6vh); }
.gf-wall-question { font-size: clamp(1.4rem, 2.8vw, 5vh); font-weight: 600; padding: 0.4em 0; }
.gf-wall ol { font-size: clamp(1.2rem, 2.3vw, 4.2vh); padding-left: 1.6em; margin: 0; }
.gf-wall li { padding: 0.1em 0; }
</style>
"""
