"""Small trainings around torch's own Transformer: letters backwards, with the mistakes that people ask about.

`https://github.com/jadore801120/attention-is-all-you-need-pytorch/issues/19` is the training without the mask, 98 %
accurate and writing nonsense; in `.../issues/44` and `https://github.com/google/trax/issues/1161` a model writes the
same whatever it reads.
"""

import random

import torch
import torch.nn.functional as F
from torch import nn

LETTERS = "abcdefgh"
IDS = {piece: i for i, piece in enumerate(["<pad>", "<s>", "</s>", "<unk>", *LETTERS])}
ANSWERS = {"scale_embedding": False, "prepend_source_bos": False, "append_source_eos": True}


def words(n, draw):
    return ["".join(draw.choices(LETTERS, k=draw.randint(3, 7))) for _ in range(n)]


PAIRS = [(word, word[::-1]) for word in words(12, random.Random(9))]


def padded(texts, before=()):
    rows = [torch.tensor([*before, *(IDS[letter] for letter in text), IDS["</s>"]]) for text in texts]
    return nn.utils.rnn.pad_sequence(rows, batch_first=True)


def batch(draw, n=64):
    """Sources [B, S] and targets [B, T], from the start mark to the end mark."""
    texts = words(n, draw)
    return padded(texts), padded([text[::-1] for text in texts], before=[IDS["<s>"]])


class Model(nn.Module):
    def __init__(self, *, mask="right", padding=True, positions=True, batch_first=True, dropout=0.0, width=32):
        super().__init__()
        self.mask, self.padding, self.positions = mask, padding, positions
        self.src_embed, self.tgt_embed = nn.Embedding(len(IDS), width), nn.Embedding(len(IDS), width)
        self.pos_embedding = nn.Embedding(16, width)
        self.transformer = nn.Transformer(width, 4, 1, 1, 64, dropout=dropout, batch_first=batch_first, norm_first=True)
        self.fc_out = nn.Linear(width, len(IDS))

    def embed(self, table, ids):
        return table(ids) + self.pos_embedding(torch.arange(ids.size(1))) * self.positions

    def forward(self, src, tgt):
        closed = torch.ones(tgt.size(1), tgt.size(1)).triu(1).bool()
        pads = src == 0 if self.padding else None
        out = self.transformer(
            self.embed(self.src_embed, src),
            self.embed(self.tgt_embed, tgt),
            tgt_mask={"right": closed, "forgotten": None, "the wrong way round": ~closed}[self.mask],
            src_key_padding_mask=pads,
            memory_key_padding_mask=pads,
        )
        return self.fc_out(out)


def train(model, steps, *, watching=None, rate=3e-3, shifted=True):
    """Train for so many steps; a target that is not shifted is read where it has to be written."""
    draw, optimizer = random.Random(0), torch.optim.Adam(model.parameters(), rate)
    for _ in range(steps):
        src, tgt = batch(draw)
        read, wanted = (tgt[:, :-1], tgt[:, 1:]) if shifted else (tgt[:, 1:], tgt[:, 1:])
        loss = F.cross_entropy(model(src, read).transpose(1, 2), wanted, ignore_index=0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if watching is not None:
            watching.step(loss=loss)
