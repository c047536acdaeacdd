"""When a page of Streamlit is at rest: it has run for all that was asked, and nothing is left to draw.

Streamlit's own sign, `data-test-script-state`, says "notRunning" until the server's first answer has come: on a busy
machine a page would count as idle before the rerun that a click asked for has begun. So the messages themselves are
watched: from the moment the page asks for a run (`BackMsg.rerun_script`) until a run that began later
(`ForwardMsg.new_session`) has ended (`ForwardMsg.script_finished`), it is not at rest.

What it does not know: what a component still draws or measures by itself; tests wait for what they look at.
"""

from __future__ import annotations

from playwright.sync_api import Page

IDLE_MS = 120_000
QUIET_MS = 300
POLL_MS = 40  # looking at each frame would make the browser draw each frame
LEAST_LOOKS = 5  # a page that did not get the processor for a while has not been quiet meanwhile

# Field numbers of Streamlit's two messages (streamlit/proto/BackMsg.proto and ForwardMsg.proto), of which only the
# numbers of the outermost fields are read; `tests/browser/test_frame.py` compares them with Streamlit's.
RERUN_SCRIPT, NEW_SESSION, SCRIPT_FINISHED = 11, 4, 6

WATCH = f"""(() => {{
  if (window.__glassformerRuns) return;
  const runs = window.__glassformerRuns = {{ asked: null, running: false }};
  const told = window.__glassformerTold = [];
  const tell = (what) => {{ told.push(`${{Math.round(performance.now())}} ${{what}}`); }};
  const path = (event) => event.composedPath().slice(0, 4).map(({{ nodeName, className }}) =>
    `${{nodeName}}.${{className?.baseVal ?? className}}`).join(" in ");
  for (const kind of ["pointerdown", "keydown"]) {{
    addEventListener(kind, (event) => tell(`${{kind}} ${{event.key ?? ""}} ${{path(event)}}`), true);
  }}
  const fields = (buffer) => {{
    const bytes = new Uint8Array(buffer), found = new Set();
    let at = 0;
    const number = () => {{
      let value = 0, factor = 1, byte;
      do {{ byte = bytes[at++]; value += (byte & 127) * factor; factor *= 128; }} while (byte & 128);
      return value;
    }};
    while (at < bytes.length) {{
      const tag = number(), kind = tag & 7;
      found.add(tag >> 3);
      if (kind === 0) number();
      else if (kind === 2) {{ const size = number(); at += size; }}
      else if (kind === 1) at += 8;
      else if (kind === 5) at += 4;
      else break;
    }}
    return found;
  }};
  const binary = (data) => data instanceof ArrayBuffer || ArrayBuffer.isView(data);
  const send = WebSocket.prototype.send;
  WebSocket.prototype.send = function (data) {{
    if (this.url.includes("_stcore/stream") && binary(data)) {{
      if (!this.__glassformerHeard) {{
        this.__glassformerHeard = true;
        this.addEventListener("message", ({{ data: answer }}) => {{
          if (!binary(answer)) return;
          const said = fields(answer);
          if (said.has({NEW_SESSION})) {{ tell("run began"); Object.assign(runs, {{ asked: null, running: true }}); }}
          if (said.has({SCRIPT_FINISHED})) {{ tell("run ended"); runs.running = false; }}
        }});
        this.addEventListener("close", () => Object.assign(runs, {{ asked: null, running: false }}));
      }}
      const view = ArrayBuffer.isView(data) ? data.slice().buffer : data;
      if (fields(view).has({RERUN_SCRIPT})) {{ tell("run asked"); runs.asked = performance.now(); }}
    }}
    return send.call(this, data);
  }};
}})()"""

# A run of a fragment that has gone meanwhile is asked for in vain: that is waited for only so long.
_IN_VAIN_MS = 5000

# One look is not enough either: what was just drawn may ask for the next run. The state has to hold for a while and
# for several looks, counted in the page (a polling test would see stale states).
_QUIET = f"""
quietMs => {{
  const app = document.querySelector('[data-testid="stApp"]'), now = performance.now();
  const runs = window.__glassformerRuns ?? {{ asked: null, running: false }};
  const waits = runs.running || (runs.asked !== null && now - runs.asked < {_IN_VAIN_MS});
  const settled = app !== null && !waits
    && app.dataset.testConnectionState === 'CONNECTED'
    && app.dataset.testScriptState === 'notRunning'
    && document.querySelector('[data-stale="true"]') === null
    && document.querySelector('[data-testid="stSkeleton"], [data-testid="stSpinner"]') === null;
  if (!settled) {{ window.__glassformerQuiet = undefined; return false; }}
  const quiet = window.__glassformerQuiet ??= {{ since: now, looks: 0 }};
  quiet.looks += 1;
  return now - quiet.since >= quietMs && quiet.looks >= {LEAST_LOOKS};
}}
"""

# What unfolds pushes down all that is below, and a chart that comes makes room for itself.
_REST = f"""() => {{
  const seen = [...document.querySelectorAll(".gf-chart, [data-testid=stDataFrame] canvas")].map((chart) => {{
    const {{ left, top, width, height }} = chart.getBoundingClientRect();
    return [left, top, width, height, chart.querySelector(".main-svg") !== null];
  }}).join(" ");
  if (window.__glassformerRest?.seen !== seen) window.__glassformerRest = {{ seen, looks: 0 }};
  return ++window.__glassformerRest.looks > {LEAST_LOOKS};
}}"""


def wait_for_idle(page: Page, *, timeout_ms: float = IDLE_MS, quiet_ms: float = QUIET_MS) -> None:
    """Return once Streamlit is connected, runs no script and shows nothing stale, for `quiet_ms` on end."""
    page.evaluate("() => { window.__glassformerQuiet = undefined; }")
    page.wait_for_function(_QUIET, arg=quiet_ms, timeout=timeout_ms, polling=POLL_MS)


def wait_for_rest(page: Page) -> None:
    """Wait until charts and tables keep their places for a while: a place is then where a mouse still finds it."""
    page.evaluate("() => { window.__glassformerRest = undefined; }")
    page.wait_for_function(_REST, polling=POLL_MS)


def last_events(page: Page, most: int = 40) -> list[str]:
    """What was pressed on a page and which runs were asked for, began and ended, in ms since it was opened."""
    told: list[str] = page.evaluate("most => (window.__glassformerTold ?? []).slice(-most)", most)
    return told
