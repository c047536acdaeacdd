"""How the numbers of a training are computed: its optimizer, its precision, its kernels, its memory.

Sources: Loshchilov and Hutter, "Decoupled Weight Decay Regularization" (2019), for AdamW; Micikevicius et al., "Mixed
Precision Training" (2018), for products in 16 bits, and for losses that are scaled so that float16 can hold their
gradients (bfloat16 has the range of float32 and needs no scale).
"""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from glassformer.extensions.training.library.settings import Precision, TrainSettings
from transformer.errors import DataError

_DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


def make_optimizer(parameters: Iterable[torch.nn.Parameter], settings: TrainSettings) -> torch.optim.AdamW:
    """AdamW with weight decay on matrices but not on biases and norms; betas of Vaswani et al. (2017)."""
    parameters = list(parameters)
    matrices = [p for p in parameters if p.dim() >= 2]
    others = [p for p in parameters if p.dim() < 2]
    groups = [{"params": matrices, "weight_decay": settings.weight_decay}, {"params": others, "weight_decay": 0.0}]
    on_gpu = parameters[0].is_cuda
    # A step that is played back reads its rate from the GPU's memory (see `graphed`).
    rate = torch.zeros((), device=parameters[0].device) if on_gpu else 0.0
    return torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.98), eps=1e-9, fused=True, capturable=on_gpu)


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Give all parameters this learning rate."""
    for group in optimizer.param_groups:
        if isinstance(group["lr"], torch.Tensor):
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate


def autocast(device: torch.device, precision: Precision) -> AbstractContextManager[object]:
    """Products in this precision, everything that needs it in float32."""
    return nullcontext() if precision == "fp32" else torch.autocast(device.type, _DTYPES[precision])


def precision_on(device: torch.device, settings: TrainSettings) -> Precision:
    """The precision asked for; float32 instead of bfloat16 where that is slower. A `DataError` where it cannot be."""
    if settings.precision == "bf16":
        return "bf16" if has_bf16(device) else "fp32"
    if settings.precision == "fp16" and (device.type != "cuda" or settings.shard):
        raise DataError("--precision fp16: needs a CUDA device, and does not go with --shard; use bf16 or fp32.")
    return settings.precision


def has_bf16(device: torch.device) -> bool:
    """Whether the hardware multiplies bfloat16 faster than float32."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    return device.type == "cpu" and bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


@contextmanager
def plain_attention() -> Iterator[None]:
    """Attention as two products and a softmax, in the type of its inputs.

    On short sentences torch's fused kernel spends more on its backward pass than it saves; and unless told otherwise
    torch turns bfloat16 into float32 for the products, as if there were no autocast.
    """
    before = torch.backends.cuda.fp16_bf16_reduction_math_sdp_allowed()  # it is for every device
    torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp(True)
    try:
        with sdpa_kernel(SDPBackend.MATH):
            yield
    finally:
        torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp(before)
