"""How a toolkit's model that was opened is compared with what its toolkit computes."""

import copy

import torch

LENGTHS = (7, 4)  # tokens of the rows of a batch; the second is padded


def batch(size, *, least, pad, seed=1):
    torch.manual_seed(seed)
    rows = torch.full((len(LENGTHS), max(LENGTHS)), pad)
    for row, length in zip(rows, LENGTHS, strict=True):
        row[:length] = torch.randint(least, size, (length,))
    return rows


@torch.no_grad()
def check(checkpoint, reference, *, size, least, most=10):
    """Teacher forcing with padding in both precisions, and greedy decoding step by step; the largest difference.

    `reference(source, target)` gives doubles [B, T, V]; what columns the model has beyond them cannot be chosen.
    """
    config, model = checkpoint.model.config, checkpoint.model
    source, target = (batch(n, least=least, pad=config.pad_id, seed=seed) for n, seed in zip(size, (1, 2), strict=True))
    target[:, 0] = config.decoder_start_id
    inside = target != config.pad_id
    inside[:, 0] = True
    expected = reference(source, target)
    n_real = expected.size(-1)
    found = model(source, target)
    assert (found[..., n_real:] < -1000).all()
    most_apart = float((found[..., :n_real] - expected)[inside].abs().max())
    assert most_apart < 1e-5 * max(1.0, float(expected.abs().max()))
    doubled = copy.deepcopy(model).double()
    apart = (doubled(source, target)[..., :n_real] - expected)[inside].abs().max()
    assert apart < 1e-6  # the table of positions is float32
    ids = source[1, : LENGTHS[1]]
    text = " ".join(checkpoint.src_tokenizer.piece(int(i)) for i in ids)
    trace = checkpoint.run(checkpoint.query(text, max_new=most))
    end = [config.eos_id] * config.append_source_eos
    assert list(trace.src_ids) == [*ids.tolist(), *end]
    written = greedy(reference, torch.tensor([trace.src_ids]), config, most=most)
    assert list(trace.tgt_ids) == written
    steps = reference(torch.tensor([trace.src_ids]), torch.tensor([trace.read_ids]))[0].log_softmax(-1)
    close = torch.from_numpy(trace.log_probs.copy())[:, :n_real] - steps
    assert close.abs().max() < 1e-4
    return most_apart


def greedy(reference, source, config, *, most):
    """The likeliest piece step by step, each time all anew."""
    written = [config.decoder_start_id]
    while len(written) <= most and (len(written) == 1 or written[-1] != config.eos_id):
        logits = reference(source, torch.tensor([written]))[0, -1]
        logits[[i for i in config.never_written if i < len(logits)]] = -torch.inf
        written.append(int(logits.argmax()))
    return written[1:]
