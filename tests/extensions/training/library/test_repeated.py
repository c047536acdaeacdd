"""A training that is killed and goes on in another process draws the same splits and makes the same weights."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

from tests.conftest import SOURCES, TARGETS
from tests.extensions.training.library.one_stack_texts import hidden
from transformer.__main__ import main
from transformer.checkpoint.load import WEIGHTS
from transformer.checkpoint.save import file_sha256

ROOT = Path(__file__).resolve().parents[4]

OPTIONS = """--layers 1 --d-model 16 --heads 2 --d-ff 16 --src-vocab 60 --tgt-vocab 60 --max-len 64 --epochs 2
--sampling 0.2 --batch-tokens 300 --warmup 5 --precision fp32 --device cpu"""

# `train`, killed without a word right after the state of epoch `sys.argv[1]` was written.
TRAIN = """
import os, sys
from tests.extensions.training.library.one_stack_texts import hidden
print(hidden(epoch=3))
from transformer.__main__ import main
from glassformer.extensions.training.library import checkpointing
last, arguments = int(sys.argv[1]), sys.argv[2:]
write_state = checkpointing.write_state
def write_and_die(out, state):
    write_state(out, state)
    if len(state["rows"]) == last:
        os._exit(9)
checkpointing.write_state = write_and_die
sys.exit(main(arguments))
"""


def python(code, *arguments):
    # Another seed of Python's own hashes each time: the order of a set must not matter.
    environment = {**os.environ, "PYTHONHASHSEED": str(abs(hash(arguments)) % 1000), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def test_a_training_and_one_that_was_killed_in_another_process_and_went_on_make_the_same_weights(tmp_path):
    text = "".join(f"{source}\t{target}\n" for source, target in zip(SOURCES, TARGETS, strict=True)) * 6
    for name in ("train", "dev"):
        (tmp_path / f"{name}.tsv").write_text(text, encoding="utf-8")
    files = ["--train", tmp_path / "train.tsv", "--dev", tmp_path / "dev.tsv"]

    def trained(name, *, killed_after=0, more=()):
        out = tmp_path / "out" / name
        arguments = ["train", *map(str, files), "--out", str(out), *shlex.split(OPTIONS), *more]
        if killed_after:
            done = python(TRAIN, killed_after, *arguments)
            assert done.returncode == 9, done.stderr
            assert done.stdout.startswith(str(hidden(epoch=3)))
        else:
            assert main(arguments) == 0
        return file_sha256(out / WEIGHTS), _rows(out)

    whole = trained("whole")
    trained("killed", killed_after=1)
    assert trained("killed", more=["--resume"]) == whole


def _rows(out):
    lines = (out / "training.csv").read_text(encoding="utf-8").splitlines()
    place = lines[0].split(",").index("seconds")
    return json.dumps([[cell for i, cell in enumerate(line.split(",")) if i != place] for line in lines])
