"""A process in the place of one that trains: it does what its first word says, and writes what a training writes."""

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

from glassformer.extensions.training_page.training_worker import listen

OUT = sys.argv[sys.argv.index("--out") + 1] if "--out" in sys.argv and sys.argv[2] == "train" else "model"
STATE = Path(f"{OUT}.training") / "state.pt"


def progress(step, steps=1000):
    STATE.parent.mkdir(exist_ok=True)
    record = {"step": step, "steps": steps, "epoch": 1, "loss": 1 / (1 + step), "tokens_a_second": 10.0}
    Path("new").write_text(json.dumps(record | {"seconds": step / 10, "left": 1.0}))
    Path("new").replace(STATE.with_name("progress.json"))


def learn():
    """Until it is interrupted, and a while longer where the state that it goes on from says so."""
    step = int(STATE.read_text()) if "--resume" in sys.argv else 0
    Path(OUT).mkdir(exist_ok=True)
    Path(OUT, "config.json").write_text("{}")
    try:
        while step < (30 if "short" in OUT else 1000):
            step += 1
            progress(step)
            time.sleep(0.02)
    except KeyboardInterrupt:
        STATE.write_text(str(step))
        sys.exit(130)


def main():
    signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=listen, daemon=True).start()
    Path("pid").write_text(str(os.getpid()))
    Path("words").write_text(" ".join(sys.argv[1:]))
    match sys.argv[2]:
        case "learn" | "train":
            learn()
        case "done" | "task":
            progress(1000)
        case "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        case "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        case "wrong":
            print("error: train.tsv, line 3: nothing there.", file=sys.stderr)
            sys.exit(2)
        case "deaf":
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            progress(1)
            time.sleep(600)
        case "write":
            for number in range(600):
                Path(f"{number}").write_bytes(bytes(100_000))
                time.sleep(0.02)


main()
