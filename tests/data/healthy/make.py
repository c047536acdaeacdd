"""Train the tiny models that stand in this folder, each for about a minute on one core of a CPU.

    python -m tests.data.healthy.make            all of them
    python -m tests.data.healthy.make gpt2 leak  some

They are what the doctor must find healthy: models of other programs, each saved as its program saves it, which solve
their tasks (`tasks`). `leak` is not healthy: it is s4 trained without the causal mask. The same machine and version
of torch give the same weights. The real libraries are needed: the requirements of development.
"""

import sys

import torch

from tests.data.healthy import folders, tutorials
from tests.data.healthy.training import Recipe, train

RECIPES = {
    "s4": Recipe(
        tutorials.article, tutorials.teacher_forced(tutorials.numbers), tutorials.weights_of("s4", torch.float32), 1200
    ),
    "leak": Recipe(
        tutorials.article,
        tutorials.leaking(tutorials.teacher_forced(tutorials.numbers)),
        tutorials.weights_of("leak", torch.float16),
        1200,
    ),
    "torch": Recipe(
        tutorials.torchs,
        tutorials.teacher_forced(tutorials.letters),
        tutorials.weights_of("torch", torch.float32),
        1000,
    ),
    "marian": Recipe(folders.marian, folders.marian_loss, folders.folder_of("marian"), 1000),
    "gpt2": Recipe(folders.gpt2, folders.next_piece, folders.folder_of("gpt2"), 2000),
    "llama": Recipe(folders.llama, folders.next_piece, folders.folder_of("llama"), 2000),
    "bert": Recipe(folders.bert, folders.bert_loss, folders.folder_of("bert"), 1500),
}

if __name__ == "__main__":
    for chosen in sys.argv[1:] or list(RECIPES):
        RECIPES[chosen].save(train(chosen, RECIPES[chosen]))
