"""The cost of the app: a cold start, a step on the Step page, and Streamlit's garbage collection.

    python -m benchmarks.app cold    # `streamlit run` until the first page, against importing its libraries
    python -m benchmarks.app step    # server CPU of one step, against a rerun of an empty page
    python -m benchmarks.app gc      # server CPU of a rerun under three settings of garbage collection

Each prints a table and a ratio. A client without a browser asks for reruns (raw_client.py). Server CPU comes from
/proc, so `step` and `gc` need Linux. The two sides of a ratio are measured in turns, in the same minutes, because a
busy machine changes. Not measured: the browser, the network.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.raw_client import RawClient, rest_on
from tools.serve import Server, serve

IMPORTS = "import torch, streamlit, plotly, sentencepiece, pandas"
GAP_SECONDS = 0.05  # what a server still does after a run (collecting garbage) must count as its CPU

# What the real app holds in memory, and a page with nothing on it.
EMPTY_APP = f"""
{IMPORTS}
import streamlit as st

st.text("empty")
"""

# About 8 million parameters in cache_resource and a small page: a slider, a heat map, a table, eight buttons.
GC_APP = f"""
import gc, os
{IMPORTS}
import numpy as np
import plotly.graph_objects as go
import streamlit as st

@st.cache_resource
def model():
    made = torch.nn.Sequential(*(torch.nn.Linear(512, 512) for _ in range(30)))
    if os.environ.get("GLASSFORMER_FREEZE"):
        gc.collect()
        gc.freeze()
    return made

step = int(st.query_params.get("step", "0"))
st.slider("step", 0, 100, key="slider")
rows = np.random.default_rng(step).random((24, 24), dtype=np.float32)
st.plotly_chart(go.Figure(go.Heatmap(z=rows)))
st.dataframe(pandas.DataFrame(rows[:8, :8]))
for number in range(8):
    st.button(f"button {{number}}")
st.text(f"step {{step}} of {{sum(p.numel() for p in model().parameters())}} parameters")
"""


@dataclass(frozen=True)
class Cost:
    """What reruns cost: milliseconds of server CPU each, latencies in milliseconds, bytes sent each."""

    cpu_ms: float
    latencies_ms: tuple[float, ...]
    kilobytes: float


Step = Callable[[RawClient, int], float]
"""Asks a client for rerun number n and returns the kilobytes that came back; `by_query` makes one."""


def by_query(*, page: str, query: str) -> Step:
    """Return a step that reruns `page` with `step=n` added to its query string."""

    def step(client: RawClient, number: int) -> float:
        joined = "&".join(part for part in (query, f"step={number}") if part)
        return client.rerun(page=page, query=joined).received_bytes / 1000

    return step


def by_stepper(client: RawClient, number: int) -> float:
    """Report step n of the run that is shown, as a browser does that has settled and whose charts have followed."""
    rest = rest_on(client.widgets, number, when=time.monotonic_ns())
    return client.rerun(states=[rest.state], fragment_id=rest.fragment_id).received_bytes / 1000


def measure(server: Server, client: RawClient, step: Step, count: int) -> Cost:
    """Ask for `count` reruns, a gap after each, and return what they cost the server."""
    latencies, kilobytes = [], 0.0
    before = cpu_seconds(server.pid)
    for number in range(count):
        started = time.perf_counter()
        kilobytes += step(client, number)
        latencies.append(1000 * (time.perf_counter() - started))
        time.sleep(GAP_SECONDS)
    time.sleep(0.3)
    used = cpu_seconds(server.pid) - before
    return Cost(1000 * used / count, tuple(latencies), kilobytes / count)


def cpu_seconds(pid: int) -> float:
    """Return the CPU time, user and system, that all threads of a process have used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mb(pid: int) -> float:
    """Return the resident memory of a process in megabytes."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


@contextlib.contextmanager
def running(
    script: str | Path, *, options: Sequence[str] = (), environment: Mapping[str, str] | None = None
) -> Iterator[tuple[Server, RawClient]]:
    """Serve an app (a path, or the text of a script) and connect a client; the first run is done."""
    with tempfile.TemporaryDirectory() as folder:
        path = script
        if isinstance(script, str) and "\n" in script:
            path = Path(folder) / "throwaway.py"
            path.write_text(script, encoding="utf-8")
        started = serve(path, log=Path(folder) / "log", options=options, environment=environment)
        with started as server, RawClient(server.url) as client:
            client.rerun()
            yield server, client


def cold_start_seconds(script: str | Path = "app.py") -> float:
    """Return the seconds from `streamlit run` until the server is healthy and a first page has run."""
    started = time.perf_counter()
    with running(script):
        return time.perf_counter() - started


def import_seconds() -> float:
    """Return the seconds from starting a bare interpreter until it has imported what the app imports."""
    started = time.perf_counter()
    command = [sys.executable, "-c", f"{IMPORTS}; print('imported', flush=True)"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        said = process.stdout.readline() if process.stdout else ""
        seconds = time.perf_counter() - started  # ending the process is not part of it
    if said != "imported\n":
        raise RuntimeError(f"`{IMPORTS}` failed with code {process.returncode}")
    return seconds


def report_cold(runs: int) -> None:
    """Print cold starts against imports; the first of each is thrown away, as it warms the disk cache."""
    starts, imports = [], []
    for _ in range(runs + 1):
        imports.append(import_seconds())
        starts.append(cold_start_seconds())
    del starts[0], imports[0]
    table([("importing the libraries", imports), ("cold start of the app", starts)], unit="s")
    ratio = median(starts) / median(imports)
    print(f"a cold start takes {ratio:.2f} times as long as the imports alone")


def report_step(runs: int, *, query: str, steps: int) -> None:
    """Print the server's CPU for a step on the Step page against a rerun of an empty page."""
    with running("app.py") as (app, visitor), running(EMPTY_APP) as (empty, other):
        visitor.rerun(page="step", query=query)  # decodes once; steps are what is measured
        measure(app, visitor, by_stepper, 3)
        costs = [
            (measure(app, visitor, by_stepper, steps), measure(empty, other, by_query(page="", query=""), steps))
            for _ in range(runs)
        ]
    real, nothing = [cost for cost, _ in costs], [cost for _, cost in costs]
    table_of_costs([("empty page", nothing), ("step on the Step page", real)])
    ratio = median(cost.cpu_ms for cost in real) / median(cost.cpu_ms for cost in nothing)
    print(f"a step costs {ratio:.1f} times the CPU of an empty page's rerun")


GC_SETTINGS: dict[str, tuple[list[str], dict[str, str]]] = {
    "Streamlit's default": (["--runner.postScriptGC=true"], {}),
    "gc.freeze() after loading": (["--runner.postScriptGC=true"], {"GLASSFORMER_FREEZE": "1"}),
    "postScriptGC=false": (["--runner.postScriptGC=false"], {}),
    "both": (["--runner.postScriptGC=false"], {"GLASSFORMER_FREEZE": "1"}),
}


def report_gc(runs: int, *, steps: int) -> None:
    """Print the server's CPU for a rerun of a small page under each setting of garbage collection."""
    rows: dict[str, list[Cost]] = {name: [] for name in GC_SETTINGS}
    grown: dict[str, float] = {}
    with contextlib.ExitStack() as stack:
        apps = {
            name: stack.enter_context(running(GC_APP, options=options, environment=environment))
            for name, (options, environment) in GC_SETTINGS.items()
        }
        step = by_query(page="", query="")
        before: dict[str, float] = {}
        for turn in range(runs + 1):  # the first turn warms up
            for name, (server, client) in apps.items():
                cost = measure(server, client, step, steps)
                if turn:
                    rows[name].append(cost)
                    grown[name] = resident_mb(server.pid) - before[name]
                else:
                    before[name] = resident_mb(server.pid)
    table_of_costs(list(rows.items()))
    for name, megabytes in grown.items():
        print(f"{name}: {megabytes:+.1f} MB resident over {runs * steps} reruns")
    default = median(cost.cpu_ms for cost in rows["Streamlit's default"])
    for name in list(rows)[1:]:
        ratio = default / median(cost.cpu_ms for cost in rows[name])
        print(f"{name}: the default takes {ratio:.1f} times its CPU")


def table(rows: Sequence[tuple[str, Sequence[float]]], *, unit: str) -> None:
    """Print median, least and greatest of each row."""
    print(f"{'':28} {'median':>9} {'min':>9} {'max':>9}   n")
    for name, values in rows:
        numbers = " ".join(f"{number:7.2f} {unit}" for number in (median(values), min(values), max(values)))
        print(f"{name:28} {numbers} {len(values):3}")


def table_of_costs(rows: Sequence[tuple[str, Sequence[Cost]]]) -> None:
    """Print CPU (median and range over turns), latency and traffic of each row."""
    print(f"{'':28} {'CPU ms':>8} {'range':>15} {'p50 ms':>8} {'p95 ms':>8} {'KB':>7}   turns x reruns")
    for name, costs in rows:
        cpu = [cost.cpu_ms for cost in costs]
        all_latencies = sorted(ms for cost in costs for ms in cost.latencies_ms)
        p95 = all_latencies[int(0.95 * (len(all_latencies) - 1))]
        spread = f"{median(cpu):8.1f} {min(cpu):7.1f}-{max(cpu):7.1f}"
        waits = f"{median(all_latencies):8.1f} {p95:8.1f} {costs[-1].kilobytes:7.1f}"
        print(f"{name:28} {spread} {waits}   {len(costs)} x {len(costs[0].latencies_ms)}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one of the benchmarks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["cold", "step", "gc"])
    parser.add_argument("--runs", type=int, default=5, help="runs, or turns, of each side")
    parser.add_argument("--steps", type=int, default=20, help="reruns in a turn")
    parser.add_argument("--query", default="", help="query string of the run to step through")
    options = parser.parse_args(arguments)
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, Python {sys.version.split()[0]}")
    if options.what == "cold":
        report_cold(options.runs)
    elif options.what == "step":
        report_step(options.runs, query=options.query, steps=options.steps)
    else:
        report_gc(options.runs, steps=options.steps)


if __name__ == "__main__":
    main()
