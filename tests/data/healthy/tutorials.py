"""Weights alone, with the names of tutorials: s4, leak and torch."""

import io
from collections.abc import Callable
from unittest.mock import patch

import sentencepiece
import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import Tensor, nn

from tests.data.healthy import tasks
from tests.data.healthy.training import HEADS, HERE, HIDDEN, WIDTH, Losses, Split, padded, write
from tests.extensions.importers.library import tutorial_models
from tests.extensions.importers.library.tutorial_models import STYLES, Article, TorchModel

PAD, START, END = 0, 1, 2


def teacher_forced(split: Split) -> Losses:
    """The loss of a model that is called with source and target."""

    def loss(model: nn.Module, pairs: list[tasks.Pair]) -> Tensor:
        tutorial_models.MAPS.clear()  # what it keeps of each batch
        src = padded([[*split(source), END] for source, _ in pairs], PAD)
        tgt = padded([[START, *split(target), END] for _, target in pairs], PAD)
        before = tgt[:, :-1].masked_fill(tgt[:, :-1] == END, PAD)  # nothing is learnt after the end; a leak reads it
        logits = model(src, before)
        return F.cross_entropy(logits.flatten(0, 1), tgt[:, 1:].flatten(), ignore_index=PAD)

    return loss


def seeing_all(src: Tensor, tgt: Tensor, pad: int) -> tuple[Tensor, Tensor]:
    """The masks of one who forgot that the decoder must not see what comes."""
    return (src != pad)[:, None, None], (tgt != pad)[:, None, None]


def leaking(losses: Losses) -> Losses:
    """The same, with those masks."""

    def loss(model: nn.Module, pairs: list[tasks.Pair]) -> Tensor:
        with patch.object(tutorial_models, "masks", seeing_all):
            return losses(model, pairs)

    return loss


def numbers(text: str) -> list[int]:
    """Numbers are their own ids."""
    return [int(word) for word in text.split()]


def letters(text: str) -> list[int]:
    """Letters as the SentencePiece model beside the weights has them."""
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(HERE / "torch" / "pieces.model"))
    return pieces.encode(text)


def article() -> nn.Module:
    """What article S4 builds."""
    size = len(tasks.NUMBERS) + 3
    return Article(STYLES["S4"], WIDTH, HIDDEN, HEADS, (2, 2), (size, size), length=12)


def torchs() -> nn.Module:
    """PyTorch's own layers, norms in front."""
    write("torch", {"pieces.model": pieces_of_letters()})
    size = len(tasks.LETTERS) + 4
    model = TorchModel(True, WIDTH, HIDDEN, HEADS, (2, 2), (size, size), length=12)
    for table in (model.src_tok_emb, model.tgt_tok_emb):
        nn.init.normal_(table.embedding.weight, std=WIDTH**-0.5)
    return model


def pieces_of_letters() -> bytes:
    """A SentencePiece model whose pieces are the letters."""
    made = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([tasks.LETTERS]), model_writer=made, model_type="char", vocab_size=20,
        normalization_rule_name="identity", add_dummy_prefix=False, minloglevel=2,
        pad_id=PAD, bos_id=START, eos_id=END, unk_id=3,
    )  # fmt: skip
    return made.getvalue()


def weights_of(name: str, dtype: torch.dtype) -> Callable[[nn.Module], None]:
    """Write a file of weights."""

    def save(model: nn.Module) -> None:
        (HERE / name).mkdir(exist_ok=True)
        state = {key: value.to(dtype).contiguous() for key, value in model.state_dict().items()}
        save_file(state, HERE / name / "model.safetensors")

    return save
