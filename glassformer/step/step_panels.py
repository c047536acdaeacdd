"""Translate page: candidates, forcing and guessing a token, results and branches, the strip of model blocks."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from types import ModuleType

import numpy as np

from glassformer.charts.theme import capitalised
from glassformer.frame.decoding import decoding_line
from glassformer.frame.sentence_stepper import sentence
from glassformer.runs import loading
from glassformer.runs.error_boundary import attempt
from glassformer.runs.map_axes import SIDE_OF
from glassformer.runs.open_run import OpenRun
from glassformer.runs.picture import PICTURES
from glassformer.runs.run_address import address
from glassformer.runs.show import show
from glassformer.runs.viewed_run import HIDDEN, VisibleTrace, branch_at, own_choice
from glassformer.server.model_runner import BusyError
from glassformer.shared import controls, cover_box, drawing, menu, page_style
from glassformer.shared.drawing import pressed
from glassformer.shared.i18n import st
from glassformer.shared.page_blocks import page_blocks
from glassformer.state import session
from glassformer.state.view import MAIN
from glassformer.step import StepLook, step_pictures
from transformer.errors import GlassformerError, QueryError
from transformer.i18n import Sentence, joined, say
from transformer.model.anatomy import Kind, Stack, anatomy
from transformer.runs.query import Sampling
from transformer.text.tokenizer import SPACE_MARK, AnyTokenizer

N_OFFERS = 5


def find_piece(text: str, tokenizer: AnyTokenizer, log_probs: np.ndarray) -> int | None:
    """The id of the piece that a person means by a text: as typed, or as the beginning of a word.

    Of two, it is the likelier one by the step's `log_probs` [vocab]: after "l'" it is "homme", elsewhere "▁homme".
    """
    text = _typed(text)
    found = [tokenizer.id_of(piece) for piece in (SPACE_MARK + text, text) if text]
    return max((i for i in found if i is not None), key=lambda i: float(log_probs[i]), default=None)


def first_piece(text: str, tokenizer: AnyTokenizer) -> int | None:
    """The id of the first piece of a text as its vocabulary splits it, beyond a bare ▁; None if that is unknown."""
    ids = tokenizer.encode(_typed(text)).ids
    first = next((i for i in ids if tokenizer.piece(i) != SPACE_MARK), None)
    return None if first is None or tokenizer.is_special(first) else first


def pieces_like(text: str, tokenizer: AnyTokenizer, log_probs: np.ndarray) -> list[int]:
    """Ids to offer for a text, at most `N_OFFERS`: the piece it begins with, and longer ones likely at the step."""
    typed = _typed(text).strip(SPACE_MARK).casefold()
    first = first_piece(text, tokenizer)
    longer = [
        i
        for i, piece in enumerate(tokenizer.pieces)
        if typed and piece.strip(SPACE_MARK).casefold().startswith(typed) and not tokenizer.is_special(i)
    ]
    likeliest = sorted(longer, key=lambda i: -float(log_probs[i]))
    return list(dict.fromkeys([*([] if first is None else [first]), *likeliest]))[:N_OFFERS]


def _typed(text: str) -> str:
    """A text as typed, without what no vocabulary can hold."""
    return text.encode("utf-8", "replace").decode("utf-8").strip()


@dataclass(frozen=True)
class GuessVerdict:
    """What is said of a guess."""

    right: bool | None  # whether the output has that piece; None if the guess could not be judged
    text: str  # in one or more sentences


def judge(guess: str, visible: VisibleTrace, tokenizer: AnyTokenizer) -> GuessVerdict:
    """Judge a guess of the current piece; one of several pieces by its first."""
    trace, step = visible.trace, visible.view.step
    whole = find_piece(guess, tokenizer, trace.log_probs[step])
    i = first_piece(guess, tokenizer) if whole is None else whole
    if i is None:
        beginning = say("“{text}” does not begin with any token of this model's vocabulary.", text=guess.strip()[:40])
        again = say("Guess again, or leave the field empty to see the model's choice.")
        return GuessVerdict(None, joined(" ", [beginning, again]))
    piece, right = trace.vocabulary[i], i == trace.tgt_ids[step]
    probability = float(np.exp(trace.log_probs[step, i]))
    found = say(
        "The model gave “{piece}” a probability of {probability} (rank {rank:,}).",
        piece=piece,
        probability=f"{probability:.3f}" if probability >= 0.001 else "<0.001",
        rank=trace.rank_of(i, step=step),
    )
    said = [say("Right.") if right else say("The output has a different token at this step."), found]
    if whole is None:
        said.insert(
            0,
            say(
                "“{text}” splits into several tokens, so only the first one, “{piece}”, counts.",
                text=guess.strip()[:40],
                piece=piece,
            ),
        )
    return GuessVerdict(right, joined(" ", said))


FORCE_CHOICE = "force_choice"
FORCE_PLACE = "force_choice_place"  # the field, and what is said of it
FORCE_REFUSED = "force_refused"  # the run and step at which the text in the field could not be forced
FORCE_OFFER = "force_offer"
GUESS_FORM = "guess_form"
GUESSED_PIECE = "guessed_piece"
REVEAL = "guess_reveal"
RESULTS = "results"  # what a lesson may cover
RESULT_CHOICE = "result_choice"
BRANCH_CHOICE = "branch_choice"
NO_TEXT = say("(no text)")
PADDING = say("Padding is never written, so it cannot be forced. Choose another token.")

BANNED = say("This model's config bans that token: it is never written, so it cannot be forced. Choose another token.")

_Output = tuple[tuple[int, ...], int]  # the forced pieces, and which result


def forcing(run: OpenRun) -> Callable[[int], None]:
    """Callback with a piece: branch off with it at the step, if the output has another; it must not hold the run."""
    slot, written = run.slot, run.trace.tgt_ids
    n_pieces, config = len(run.trace.vocabulary), run.checkpoint.config

    def force(piece_id: int) -> None:
        step = session.view(slot).step  # the browser may have moved on since this was drawn
        if not 0 <= piece_id < n_pieces or piece_id == written[step]:
            return
        if piece_id in config.never_written:
            session.add_note(PADDING if piece_id == config.pad_id else BANNED, slot)
            return
        session.go_to_output(slot, branch_at(written, step, piece_id), 0, step)

    return force


def by_name(run: OpenRun) -> None:
    """Draw the field that forces a piece by its text, and under it what is said of a text that cannot be forced."""
    slot, key, refused = run.slot, run.key(FORCE_CHOICE), run.key(FORCE_REFUSED)
    config, written, tokenizer = run.checkpoint.config, run.trace.tgt_ids, run.checkpoint.tgt_tokenizer
    force, again, run_id = forcing(run), run.again(), run.stepper.run_id

    def take() -> None:
        text, step = st.session_state.get(key) or "", session.view(slot).step
        try:
            i = find_piece(text, tokenizer, again().log_probs[step])
        except (GlassformerError, BusyError) as error:
            session.add_note(capitalised(error.sentence), slot)
            return
        shown = text.strip()[:40]
        if i is None and shown:
            why = say("“{text}” is not a single token of this model's vocabulary.", text=shown)
        elif i in config.never_written:
            why = PADDING if i == config.pad_id else BANNED
        elif i == written[step]:
            why = say("The output already has “{text}” at this step.", text=shown)
        else:
            if i is not None:
                take_offer(i)
            return
        st.session_state[refused] = (run_id, step), why

    def take_offer(piece_id: int) -> None:
        st.session_state[key], st.session_state[refused] = "", None
        force(piece_id)

    why = was_refused(run)
    if st.session_state.get(key) and not why:
        st.session_state[key] = ""  # it was typed at another step
    with st.container(key=run.key(FORCE_PLACE), gap="small"):
        text = st.text_input(
            say("Force another token here"),
            key=key,
            on_change=take,
            placeholder=say("Click a bar above, or type a token"),
            help=say(
                "The output continues from that token. Both outputs are then listed below; click one to switch to it."
            ),
        )
        if why:
            _refused(run, text, why, take_offer)
        branches(run)


def was_refused(run: OpenRun) -> str:
    """Why a text that was just typed cannot be forced at this step; "" if none was."""
    at, why = st.session_state.get(run.key(FORCE_REFUSED)) or (None, "")
    return why if at == (run.stepper.run_id, run.view.step) else ""


def _refused(run: OpenRun, text: str, said: str, take: Callable[[int], None]) -> None:
    """Say why a text cannot be forced, and offer the pieces that it begins with or that begin with it."""
    tokenizer, log_probs = run.checkpoint.tgt_tokenizer, run.trace.log_probs[run.view.step]
    found = [i for i in pieces_like(text, tokenizer, log_probs) if i != run.trace.tgt_ids[run.view.step]]
    st.caption(drawing.plain(joined(" ", [said, say("Force a token with the same beginning:")]) if found else said))
    if not found:
        return
    with st.container(horizontal=True, gap="small"):
        for i in found:
            st.button(
                drawing.plain(run.trace.vocabulary[i]),
                key=run.key(f"{FORCE_OFFER}_{i}"),
                help=say("Rank {rank:,} at this step", rank=run.trace.rank_of(i, step=run.view.step)),
                on_click=take,
                args=(i,),
            )


def guess(run: OpenRun) -> None:
    """Ask what comes next; what cannot be judged is asked again."""
    with st.form(run.key(GUESS_FORM), border=True):
        guessed = st.text_input(say("What comes next? Your guess:"), key=run.key(GUESSED_PIECE))
        about, is_over = f"{run.stepper.run_id} {run.view.step}", False
        with pressed(st.form_submit_button, say("Reveal"), key=run.key(REVEAL), about=about, type="primary") as asked:
            if asked:
                said = judge(guessed, run.visible, run.checkpoint.tgt_tokenizer) if guessed.strip() else None
                if said is not None and said.right is None:
                    st.warning(drawing.with_code(said.text))
                else:
                    session.reveal(run.slot, run.stepper.run_id, run.view.step, guessed)
                    is_over = True
    if is_over:
        st.rerun()
    st.caption(say("Click Reveal to see the candidates. You may leave the guess empty."))


def verdict(run: OpenRun) -> None:
    """Say how the guess stands among the model's candidates: only a right one is green."""
    guessed = session.standing(run.slot).guess
    if not guessed.strip():
        return
    found = judge(guessed, run.visible, run.checkpoint.tgt_tokenizer)
    (st.success if found.right else st.warning)(drawing.plain(found.text))


# ------------------------------------------------------------------------------------------------ which output


def results(run: OpenRun) -> None:
    """List beam search's results, if any; one click shows another."""
    n = len(run.trace.hypotheses)
    if (n == 1 and run.view.guess) or not n or cover_box.covered(run.key(RESULTS)):
        return
    forced, hypothesis = run.trace.query.forced, run.trace.query.hypothesis
    found = {(forced, i): _hypothesis_label(run, i) for i in range(n)}
    _choose(run, RESULT_CHOICE, say("Results of beam search"), found, (forced, hypothesis))


def branches(run: OpenRun) -> None:
    """List the branches that were tried, if any: below where they are forced, so nothing above moves."""
    if cover_box.covered(run.key(RESULTS)):
        return
    forced = run.trace.query.forced
    known = session.remember(run.slot, own_choice(run.trace.query), forced)
    texts = {one: _text_of(run, one) for one in ((), *known)}
    options = {
        (one, run.trace.query.hypothesis if one == forced else 0): joined(" ", [_branch_name(run, one), text])
        for one, text in texts.items()
        if text is not None
    }
    if len(options) > 1:
        _choose(run, BRANCH_CHOICE, say("Outputs"), options, (forced, run.trace.query.hypothesis))


def _choose(run: OpenRun, name: str, label: str, options: Mapping[_Output, str], here: _Output) -> None:
    slot, key = run.slot, run.key(name)
    st.session_state[key] = here

    def go() -> None:
        forced, hypothesis = st.session_state[key]
        session.go_to_output(slot, forced, hypothesis, max(len(forced) - 1, 0))

    st.radio(label, list(options), key=key, format_func=lambda option: options.get(option, ""), on_change=go)


def _text_of(run: OpenRun, forced: tuple[int, ...]) -> str | None:
    """What a branch says; None for one that there cannot be, as an address may say anything."""
    if max(forced, default=0) >= len(run.trace.vocabulary):
        return None
    if run.view.guess:
        return ""
    try:
        trace = loading.runner().trace(run.checkpoint, replace(own_choice(run.trace.query), forced=forced))
    except QueryError:
        return None
    except (GlassformerError, BusyError):  # there is enough to see without it
        return ""
    return drawing.plain(trace.output_text) or NO_TEXT


def _branch_name(run: OpenRun, forced: tuple[int, ...]) -> str:
    """How a branch is called: by the last piece that was forced."""
    if not forced:
        drawn = isinstance(run.trace.query.decoding, Sampling)
        return say("**Original draw**") if drawn else say("**Model's own choice**")
    last = len(forced) - 1
    seen = run.visible.n_steps - int(run.visible.covered)
    piece = drawing.plain(run.trace.vocabulary[forced[-1]]) if last < seen else HIDDEN
    return say("**Step {n}: {piece}**", n=last + 1, piece=piece)


def _hypothesis_label(run: OpenRun, index: int) -> str:
    found = run.trace.hypotheses[index]
    return say("**{n}.** {text} (log-probability {log_prob:.2f}, score {score:.2f})", n=index + 1,
               text="" if run.view.guess else drawing.plain(found.text) or NO_TEXT, log_prob=found.log_prob,
               score=found.score)  # fmt: skip


# ------------------------------------------------------------------------------------------------ the model's blocks


@dataclass(frozen=True)
class ModelBlock:
    """A part of the model."""

    name: str  # the value of the field of the view
    term: Sentence  # what it is called
    does: Sentence  # what it does, in plain words
    page: str  # the path of the page about it
    picture: str  # the module that declares its picture, and the key: "package.module:key"
    fields: Mapping[str, object] = field(default_factory=dict)  # what is looked at, by the names of fields
    kind: Kind | None = None  # the attention that its picture is of


_MAP = "glassformer.step.step_pictures:cross_map"


def stack_blocks(stack: Stack) -> Iterator[ModelBlock]:
    """The blocks of a stack, in the order of the computation."""
    name, side = stack.name, {"side": SIDE_OF[stack.name]}
    tokens, every = side | {"inside_panel": "pieces"}, {"panel": "overview", "layer": None, "head": None}
    yield ModelBlock(
        f"{name}_embedding", say("Embedding"), say("Each token becomes numbers"), "inside",
        "glassformer.inside.embeddings_pictures:piece_map", tokens,
    )  # fmt: skip
    yield ModelBlock(
        f"{name}_positions", say("Positions"), say("Each token's position is added"), "positions",
        "glassformer.positions.table_pictures:position_table", side | {"positions_panel": "table"},
    )  # fmt: skip
    if name == "decoder":
        yield ModelBlock(
            "mask", say("Causal mask"), say("No looking ahead"), "masks", "glassformer.masks.mask_pictures:mask_bool",
            {"masks_panel": "masks", "mask": "causal", "sentence": 0},
        )  # fmt: skip
    does = say("What each token means in context") if name == "encoder" else say("What has been written so far")
    yield ModelBlock(name, say("Self-attention"), does, "attention", _MAP, every | {"kind": name}, name)
    if "cross_attn" in stack.sublayers:
        does = say("Where to look in the source")
        yield ModelBlock("cross", say("Cross-attention"), does, "attention", _MAP, every | {"kind": "cross"}, "cross")
    yield ModelBlock(
        f"{name}_ffn", say("Feed-forward"), say("Each token is processed separately"), "inside",
        "glassformer.inside.ffn_pictures:ffn_map", side | {"inside_panel": "ffn"},
    )  # fmt: skip
    if name == "decoder":
        does, picture = say("Which token comes next"), "glassformer.step.step_pictures:entropy"
        yield ModelBlock("output", say("Output layer"), does, "search", picture)


def shown_block(run: OpenRun) -> ModelBlock:
    """The chosen block: at first the last attention, or the output where an address says how unsure is measured."""
    blocks = [one for stack in anatomy(run.checkpoint.config).stacks for one in stack_blocks(stack)]
    look = run.view.of(StepLook)
    asked = "output" if look.shown_block == "auto" and look.unsure != StepLook.unsure else look.shown_block
    named = next((one for one in blocks if one.name == asked), None)
    return named or next(one for one in reversed(blocks) if one.kind is not None)


def picture(run: OpenRun, block: ModelBlock) -> None:
    """Draw the picture of a block."""
    module, _, key = block.picture.partition(":")
    import_module(module)  # declares it
    drawn = PICTURES[key]
    if block.kind is not None:  # its part has no scene of a run without steps
        show(drawn, run)
        return
    scene = drawn.part.scene(replace(run, visible=replace(run.visible, view=run.view.but(**block.fields))))
    if scene is not None:
        show(drawn, scene)


def strip(run: OpenRun, shown: ModelBlock) -> None:
    """Draw a line of blocks for each stack, what can be chosen in the shown one, and the way to the page about it."""
    with st.container(key=run.key("model_strip"), gap="small"):
        for stack in anatomy(run.checkpoint.config).stacks:
            key = run.key(f"{page_style.BLOCKS}_{stack.name}")
            with st.container(horizontal=True, vertical_alignment="center", key=key):
                named = say("Encoder") if stack.name == "encoder" else say("Decoder")
                st.markdown(drawing.strong(named), width="content")
                for block in stack_blocks(stack):
                    st.button(
                        block.term,
                        key=run.key(f"block_{block.name}"),
                        type="primary" if block == shown else "secondary",
                        help=block.does,
                        on_click=partial(session.replace, run.slot, shown_block=block.name),
                    )
        with controls.bar(run.slot):
            if shown.kind in run.trace.kinds:
                n_layers, n_heads = run.trace.maps(shown.kind).shape[:2]
                layer = controls.menu_of_layers(controls.field(run.slot, "layer"), n_layers)
                controls.menu_of_heads(controls.field(run.slot, "head"), n_heads, disabled=layer is None)
            if not cover_box.is_on():
                leads_to = address(run.checkpoint, run.link, **shown.fields)
                label = say("{block}: open the page", block=shown.term)
                menu.link(shown.page, label, leads_to, icon=":material/open_in_new:")


def _hidden_pieces() -> ModuleType:
    """The panels of a model that writes nothing, which most visitors never open: imported when one does."""
    return import_module("glassformer.step.hidden_piece_panels")


def draw(run: OpenRun) -> None:
    """Draw the sentence, how it is decoded, the parts below it, and what can be done with the head that is chosen."""
    chosen = None if run.trace.n_steps else _hidden_pieces().chosen(run)
    sentence(run, chosen=chosen, asks=bool(was_refused(run)), large=True)
    if run.trace.n_steps and run.slot == MAIN:
        decoding_line(run.checkpoint)
    cover_box.part(lambda: parts(run))
    for blocks in page_blocks():
        blocks.for_head(run, run.visible.kind, run.view.layer, run.view.head)


def parts(run: OpenRun) -> None:
    """Draw all of them."""
    shown = shown_block(run)
    if not run.trace.n_steps:
        _hidden_pieces().draw(run)
        _looked_at(run, shown)
        strip(run, shown)
    else:
        results(run)
        with st.container(key=run.key(page_style.STEP_GRID)):
            candidates(run)
            _looked_at(run, shown)
            strip(run, shown)


def _looked_at(run: OpenRun, block: ModelBlock) -> None:
    """Draw the picture of the chosen block."""
    with st.container(key=run.key("looked_at"), gap="small"):
        if block.name == "output":
            labels = {name: measure.label for name, measure in step_pictures.MEASURES.items()}
            controls.choose(controls.field(run.slot, "unsure"), say("Measured over"), labels, bare=True)
            show(step_pictures.entropy, run, take=partial(session.move_to, run.slot))
            return
        attempt(lambda: picture(run, block))


def candidates(run: OpenRun) -> None:
    """Draw the most probable pieces of the step; in guess mode ask for a guess first."""
    if not run.view.guess:
        _candidate_chart(run)
        return
    with st.container(key=run.key(page_style.GUESSING)):
        if run.visible.covered:
            guess(run)
            branches(run)
        else:
            verdict(run)
            _candidate_chart(run)


def _candidate_chart(run: OpenRun) -> None:
    show(step_pictures.candidates, run, take=forcing(run))
    by_name(run)
