"""Queries that are run together have no drafts."""

from glassformer.extensions.drafts import drafter
from tests.transformer.runs.test_together import WORDS, made_up
from transformer.runs import running
from transformer.runs.dynamic_batching import run_together


def test_what_the_model_writes_itself_counts_as_no_draft(monkeypatch):
    monkeypatch.setenv(drafter.ENVIRONMENT, "none")
    checkpoint, judged = made_up(4), []
    monkeypatch.setattr(drafter, "judge", lambda model, **how: judged.append(how))
    queries = [running.Query(checkpoint="hash", source=word, max_new=6) for word in WORDS]
    assert len(list(run_together(checkpoint, queries))) == len(queries)
    assert not judged
