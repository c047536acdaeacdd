"""A Transformer that shows its insides: an encoder-decoder, encoder-only or decoder-only model.

    import transformer

    checkpoint = transformer.load("checkpoints/zh-en")
    trace = checkpoint.run("我喜欢喝咖啡。")
    trace.output_text, trace.cross.shape, trace.step(2).candidates

To understand the model, read config, anatomy, masks, positions, attention, layers, transformer in
`transformer/model/`, in that order.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
