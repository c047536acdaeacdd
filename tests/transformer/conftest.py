"""The library's tests run on one thread: on tiny tensors more only get into each other's way."""

import torch

torch.set_num_threads(1)
