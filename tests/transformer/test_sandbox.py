"""A process that reads what was handed in can do little else, tried from inside."""

import json
import os
import subprocess
import sys
from pathlib import Path

from transformer import sandbox

SCRIPT = f"""
import json, os, signal, socket, sys
sys.path.insert(0, {str(Path(sandbox.__file__).parent)!r})
import sandbox
from pathlib import Path
own, others, server = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
done = sandbox.confine(own, [], memory=2**28, seconds=5, file_bytes=10**6)

def tried(work):
    try:
        work()
    except BaseException as error:
        return type(error).__name__
    return "done"

def grows():
    with (own / "large").open("wb") as file:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        file.write(bytes(2 * 10**6))
        file.flush()

print(json.dumps({{
    "done": done,
    "writes into its folder": tried(lambda: (own / "x").write_text("x")),
    "writes elsewhere": tried(lambda: (others / "x").write_text("x")),
    "reads elsewhere": tried(lambda: (others / "secret").read_text()),
    "lists elsewhere": tried(lambda: os.listdir(others)),
    "opens a socket": tried(lambda: socket.socket()),
    "connects": tried(lambda: socket.create_connection(("127.0.0.1", 9), timeout=1)),
    "takes memory": tried(lambda: bytearray(2**29)),
    "writes a large file": tried(grows),
    "ends another process": tried(lambda: os.kill(server, signal.SIGTERM)),
    "starts a program": tried(lambda: __import__("subprocess").run([sys.executable, "-c", "1"], check=True)),
    "reads its environment": tried(lambda: Path(f"/proc/{{server}}/environ").read_bytes()),
}}))
"""


def test_it_does_its_work_within_limits_without_a_network_and_nothing_else_is_in_reach(tmp_path):
    own, others = tmp_path / "own", tmp_path / "others"
    own.mkdir()
    others.mkdir()
    (others / "secret").write_text("secret")
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as server:
        command = [sys.executable, "-c", SCRIPT, str(own), str(others), str(server.pid)]
        found = json.loads(subprocess.run(command, capture_output=True, check=True, timeout=300).stdout)
        assert server.poll() is None  # it lives
        server.kill()
    assert not (others / "x").exists()
    assert found["writes into its folder"] == found["starts a program"] == "done"
    assert (found["takes memory"], found["writes a large file"]) == ("MemoryError", "OSError")
    assert found["opens a socket"] == found["connects"] == "PermissionError"
    assert {"limits", "calls"} <= set(found["done"])  # on the processors and systems that the tests run on
    if "files" in found["done"]:
        for what in ("writes elsewhere", "reads elsewhere", "lists elsewhere", "reads its environment"):
            assert found[what] == "PermissionError", what
    else:
        assert os.uname().release < "5.13"  # Landlock came with it
