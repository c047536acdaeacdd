"""`python -m transformer evaluate`: scores on pairs (by length, worst as CSV) and on gold word alignments."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformer.checkpoint.named import named
from transformer.commands import add_alignments, add_device
from transformer.errors import DataError
from transformer.text.cells import write_csv

if TYPE_CHECKING:
    from glassformer.extensions.training.library.held_out_scores import EvaluationScoring, HeldOut
    from transformer.analysis.alignment import AlignmentScores
    from transformer.checkpoint.load import Checkpoint
    from transformer.runs.query import Beam, Greedy

ROW_NAMES = {"predicts": "Row that predicts the token", "reads": "Row that has read the token"}


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.set_defaults(run=_run)
    parser.add_argument("checkpoint", type=named, help="a checkpoint folder, or a name such as zh-en")
    parser.add_argument("--record", action="store_true", help="write the scores into the folder's card.json")
    add_device(parser)
    pairs = parser.add_argument_group("translations")
    pairs.add_argument(
        "--pairs", type=Path, metavar="FILE", help="source TAB target, or for an encoder-only model a text, per line"
    )
    pairs.add_argument("--greedy", action="store_true", help="decode greedily (the default without --beam)")
    pairs.add_argument("--beam", type=int, action="append", metavar="N", help="decode with N beams; may be repeated")
    pairs.add_argument(
        "--length-penalty", type=float, metavar="X", help="length penalty of beam search, 0 to 2 (default: the app's)"
    )
    pairs.add_argument(
        "--words",
        choices=("13a", "zh", "char", "none"),
        help="how BLEU finds words; none: the text is tokenised already (default: usual for the card's target_code)",
    )
    pairs.add_argument("--max-pairs", type=int, metavar="N", help="score only the first N pairs")
    pairs.add_argument("--worst", type=Path, metavar="FILE.csv", help="write the sentences with the lowest chrF")
    pairs.add_argument("--worst-count", type=int, default=50, metavar="N", help="how many (default 50)")
    pairs.add_argument(
        "--by-length", type=Path, metavar="FILE.csv", help="instead: loss and exact greedy outputs by length of source"
    )
    links = parser.add_argument_group("word alignments")
    add_alignments(
        links,
        "two files of words, line by line, and a file of gold links: 3-4 sure, 3p4 possible, from 0",
        "how {side} words become text: with spaces, without, or with punctuation attached to words (default: usual "
        "for the card's {side}_code)",
    )


def _run(options: argparse.Namespace) -> None:
    from glassformer.extensions.training.library import held_out_scores
    from transformer.checkpoint.load import load
    from transformer.checkpoint.snapshots import meant

    if not options.pairs and not options.alignments:
        raise DataError("there is nothing to score; give --pairs FILE or --alignments SRC TGT GOLD.")
    decodings = _decodings(options)
    _check_worst(options)
    checkpoint = load(options.checkpoint, device=options.device)
    if options.record:
        if meant(options.checkpoint)[1] is not None:
            raise DataError("{name}: a snapshot has no card of its own; leave out --record.", name=checkpoint.name)
        held_out_scores.read_open_card(checkpoint.folder)  # now, not after minutes
    records: list[dict[str, object]] = []
    if options.pairs:
        held_out = held_out_scores.read_held_out(options.pairs, checkpoint.config, max_pairs=options.max_pairs)
        if options.by_length:
            _score_lengths(checkpoint, held_out, options.by_length)
        else:
            records += _score_pairs(checkpoint, held_out, decodings, options=options)
    if options.alignments:
        records.append(_score_alignments(checkpoint, options))
    if options.record:
        held_out_scores.record_scores(checkpoint, records)
        print(f"Recorded in {options.checkpoint / 'card.json'}.")


def _decodings(options: argparse.Namespace) -> list[Greedy | Beam]:
    from transformer.runs.query import Beam, Greedy

    default = not options.greedy and not options.beam
    penalty = Beam.length_penalty if options.length_penalty is None else options.length_penalty
    sizes = dict.fromkeys([5] if default else options.beam or [])
    beams = [Beam(size=size, length_penalty=penalty) for size in sizes]
    return [Greedy(), *beams] if options.greedy or default else [*beams]


def _check_worst(options: argparse.Namespace) -> None:
    if options.worst_count < 1:
        raise DataError(
            "{name} is {value}; expected at least {least}.", name="--worst-count", value=options.worst_count, least=1
        )
    if options.by_length and not options.pairs:
        raise DataError("--by-length needs --pairs FILE, because it scores sentence pairs.")
    if options.worst and not options.pairs:
        raise DataError("--worst needs --pairs FILE, because it lists sentence pairs.")
    if options.worst and not options.worst.parent.is_dir():
        raise DataError("{file}: its folder does not exist; create it first.", file=str(options.worst))
    if options.worst:
        _check_own(options.worst)


def _check_own(worst: Path) -> None:
    """Refuse to replace anything but the output of an earlier call."""
    from glassformer.extensions.training.library import held_out_scores

    begin = (",".join(held_out_scores.WORST_COLUMNS) + "\n").encode("utf-8-sig")
    try:
        with worst.open("rb") as file:
            found = file.read(len(begin))
    except FileNotFoundError:
        return
    except OSError as error:
        raise DataError("{file}: cannot be written ({reason}).", file=str(worst), reason=error.strerror) from None
    if found not in (b"", begin):
        raise DataError(
            "{file}: was not written by --worst, so it will not be overwritten; choose another file.", file=str(worst)
        )


def _score_pairs(
    checkpoint: Checkpoint, held_out: HeldOut, decodings: list[Greedy | Beam], *, options: argparse.Namespace
) -> list[dict[str, object]]:
    from glassformer.extensions.training.library import held_out_scores

    if not checkpoint.model.anatomy.writes:
        found = held_out_scores.score_gaps(checkpoint, held_out)
        print(
            f"{held_out.name}, SHA-256 {held_out.sha256}: {found['texts']:,} texts, {found['pieces']:,} tokens, each "
            f"hidden alone: loss {found['loss']} nats, {found['exact']:.2%} guessed right"
        )
        return [found]
    scorings = []
    for decoding in decodings:
        with _bar(len(held_out.pairs), held_out_scores.decoding_name(decoding)) as bar:
            scoring = held_out_scores.evaluate(checkpoint, held_out, decoding, words=options.words, done=bar.update)
        scorings.append(scoring)
    _print_scores(held_out, scorings)
    if options.worst:
        write_csv(options.worst, held_out_scores.worst_csv(held_out, scorings, count=options.worst_count))
        print(f"The worst sentences stand in {options.worst}.")
    return [held_out_scores.score_record(held_out, scoring) for scoring in scorings]


def _score_lengths(checkpoint: Checkpoint, held_out: HeldOut, file: Path) -> None:
    from glassformer.extensions.training.library import held_out_scores

    found = held_out_scores.scores_by_length(checkpoint, held_out.pairs)
    print("length   pairs     loss    exact")
    for one in found:
        beyond = "  longer than in training" if one.seen == 0 else ""
        print(f"{one.length:>6} {one.pairs:>7,} {one.loss:>8.3f} {one.exact:>8.1%}{beyond}")
    held_out_scores.write_lengths(file, found)


def _print_scores(held_out: HeldOut, scorings: list[EvaluationScoring]) -> None:
    from glassformer.extensions.training.library import held_out_scores
    from transformer.runs.query import Beam

    print(f"{held_out.name}: {len(held_out.pairs):,} of {held_out.n_in_file:,} pairs, SHA-256 {held_out.sha256}")
    for scoring in scorings:
        scores, decoding = scoring.scores, scoring.decoding
        penalty = f", length penalty {decoding.length_penalty:g}" if isinstance(decoding, Beam) else ""
        found = f"BLEU {scores.bleu:.2f}, chrF {scores.chrf:.2f}, {scores.exact:.1%} exact"
        print(f"{held_out_scores.decoding_name(decoding)}{penalty}: {found}")
        if scoring.n_cut:
            print(f"  {scoring.n_cut:,} outputs were cut after {scoring.max_new} tokens.")
    print(f"BLEU: {scorings[0].scores.signature}\nchrF: {scorings[0].scores.chrf_signature}")
    if scorings[0].n_unread:
        print(f"{scorings[0].n_unread:,} sources cannot be read (too long or empty); their outputs count as empty.")


def _score_alignments(checkpoint: Checkpoint, options: argparse.Namespace) -> dict[str, object]:
    from transformer.analysis.alignment import read_gold, score_alignment, usual_spacing

    gold = read_gold(*options.alignments)
    with _bar(len(gold.pairs), "alignments") as bar:
        scores = score_alignment(
            checkpoint,
            gold,
            source_text=options.source_text or usual_spacing(checkpoint.card.source_code),
            target_text=options.target_text or usual_spacing(checkpoint.card.target_code),
            done=bar.update,
        )
    _print_alignments(scores)
    return scores.record()


def _print_alignments(scores: AlignmentScores) -> None:
    from transformer.analysis.alignment import ROWS

    names, best = scores.gold.names, scores.best
    print(f"{', '.join(names)}: {scores.n_sentences:,} of {len(scores.gold.pairs):,} sentence pairs")
    for reason, n in scores.left_out.items():
        print(f"  {n:,} left out {reason}")
    print(f"Alignment error rate in %, lower is better; source text {scores.source_text}, target {scores.target_text}.")
    n_layers, n_heads = scores.heads.shape[1:]
    for row, name in enumerate(ROWS):
        print(f"{ROW_NAMES[name]:<30}" + "".join(f"head {h + 1:<3}" for h in range(n_heads)) + "mean of heads")
        for layer in range(n_layers):
            rates = [*scores.heads[row, layer], scores.layers[row, layer]]
            print(f"  {f'decoder layer {layer + 1}':<28}" + "".join(f"{rate:<8.1%}" for rate in rates).rstrip())
        print(f"  {'all layers':<28}" + " " * 8 * n_heads + f"{scores.mean[row]:.1%}")
    print(f"Linked by the same relative place, without a model: {scores.diagonal:.1%}")
    low, high = scores.outside.min(), scores.outside.max()
    print(f"Weight on tokens of no word (end mark, lone space), left out of links: {low:.1%} to {high:.1%} by head")
    print(f"Best head: decoder layer {best.layer}, head {best.head}, {ROW_NAMES[best.row].lower()}: {best.aer:.1%}")


def _bar(total: int, name: str) -> Any:
    from tqdm import tqdm

    return tqdm(total=total, desc=name, unit="sentence", mininterval=0.5)
