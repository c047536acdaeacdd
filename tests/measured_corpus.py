"""A corpus run of a shipped model, measured in this process."""

from pathlib import Path

from glassformer.extensions.corpus.library import lines
from glassformer.extensions.corpus.library.folder import Run, open_run
from glassformer.extensions.corpus.library.shards import claimed, plan
from glassformer.extensions.corpus.library.tables import CorpusOptions
from transformer.checkpoint.load import load

CHECKPOINTS = Path(__file__).parents[1] / "checkpoints"


def measure(texts: str, out: Path, options: CorpusOptions, *, model: str = "reverse") -> Run:
    """Measure lines of text, as of a file, into a new folder in `out`."""
    file = out / "letters.tsv"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(texts, encoding="utf-8")
    whole = plan(load(CHECKPOINTS / model), CHECKPOINTS / model, lines.pairs(file), options, out=out)
    with claimed(whole):
        for shard in whole.missing():
            whole.write(shard.number, whole.job.files(shard))
        whole.close()
    return open_run(whole.folder)
