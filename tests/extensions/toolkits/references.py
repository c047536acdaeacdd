"""What four toolkits compute, written from their papers and their published code, in doubles.

Sources: Ott et al., "fairseq" (2019), with positions as in tensor2tensor, counted behind padding; Klein et al.,
"OpenNMT" (2017), with norms before sub-layers; Kreutzer et al., "Joey NMT" (2019); Junczys-Dowmunt et al., "Marian"
(2018), and its documentation of `--transformer-postprocess`; Vaswani et al. (2017).
"""

import math
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F

from tests.extensions.importers.library.recipes import LENGTH, Recipe, State, attention, of_sides, within

NAMED = {"gelu_accurate": "gelu_tanh", "swish": "silu", "gated-gelu": "gelu"}  # activations that have another name


def sines(first, last, d, *, apart):
    """Of positions from `first` on: all sines before all cosines, or one after the other."""
    half = torch.arange(d // 2, dtype=torch.float64)
    rates = torch.exp(-math.log(10000) * (half / (d // 2 - 1) if apart else half / (d / 2)))
    angle = torch.arange(first, last, dtype=torch.float64)[:, None] * rates
    both = [angle.sin(), angle.cos()]
    return torch.cat(both, dim=-1) if apart else torch.stack(both, dim=-1).flatten(-2)


@dataclass(frozen=True)
class Reference:
    """A toolkit's model and its parameters, which are saved in float32."""

    recipe: Recipe
    state: State = field(default_factory=State)

    def __post_init__(self):
        torch.manual_seed(0)
        self.state.in_doubles = True
        self(torch.tensor([[2]]), torch.tensor([[2]]))

    def __call__(self, source, target):
        return self.recipe(self.state, source, target)


class FromRow2(Recipe):
    """Row 1 of fairseq's table is for padding; a source and a target have one length here."""

    def places(self, s, i, n):
        return s.of(self.positions[i], 42, self.d)[2 : n + 2]


def fairseq(args, sizes):
    pre, learned = args["encoder_normalize_before"], args.get("encoder_learned_pos")
    table = "decoder.embed_tokens"
    copies = {table: "encoder.embed_tokens"} if args["share_all_embeddings"] else {}
    copies |= {"decoder.output_projection": table} if args["share_decoder_input_output_embed"] else {}
    formula = not (learned or args.get("no_token_positional_embeddings"))
    return Reference((FromRow2 if learned else Recipe)(
        of_sides("{}.embed_tokens"), "decoder.output_projection",
        within("self_attn self_attn encoder_attn", "q_proj k_proj v_proj out_proj"), ("fc1 fc2",),
        ("self_attn_layer_norm final_layer_norm",
         "self_attn_layer_norm encoder_attn_layer_norm final_layer_norm"),
        last=of_sides("{}.layer_norm") if pre else (), scaled=not args.get("no_scale_embedding"),
        positions=of_sides("{}.embed_positions.weight") if learned else (),
        sines=sines(2, LENGTH, 12, apart=True) if formula else None,
        embedding_norms=of_sides("{}.layernorm_embedding") if args.get("layernorm_embedding") else (),
        act=NAMED.get(args["activation_fn"], args["activation_fn"]), hidden=args["encoder_ffn_embed_dim"],
        decoder_hidden=args["decoder_ffn_embed_dim"], heads=args["encoder_attention_heads"],
        decoder_heads=args["decoder_attention_heads"], depths=(args["encoder_layers"], args["decoder_layers"]), d=12,
        output_bias=False, copies=copies, sizes=sizes,
    ))  # fmt: skip


def joey_nmt(model, sizes, norms):
    first, second = model["encoder"], model["decoder"]
    tables, act = (*of_sides("{}_embed.lut", "src trg"), "decoder.output_layer"), first.get("activation", "relu")
    shared = (model["tied_embeddings"], model["tied_softmax"])
    return Reference(Recipe(
        tables[:2], tables[2],
        within("src_src_att trg_trg_att src_trg_att", "q_layer k_layer v_layer output_layer"),
        within("feed_forward.pwff_layer", "0 3"), ("layer_norm feed_forward.layer_norm",
        "x_layer_norm dec_layer_norm feed_forward.layer_norm"), ends={"eps": 1e-6},
        last=of_sides("{}.layer_norm") if norms == "pre" else (), scaled=first["embeddings"].get("scale"),
        sines=sines(0, LENGTH, 12, apart=False), act=NAMED.get(act, act), hidden=first["ff_size"],
        decoder_hidden=second["ff_size"], heads=first["num_heads"], decoder_heads=second["num_heads"],
        depths=(first["num_layers"], second["num_layers"]), d=12, output_bias=False,
        copies={tables[i + 1]: tables[i] for i in (0, 1) if shared[i]}, sizes=sizes,
    ))  # fmt: skip


def opennmt(opt, sizes, version):
    """Of versions 2 and 3; what its state calls the generator is saved beside it."""
    output, act = "generator" if version == 3 else "generator.0", opt["pos_ffn_activation_fn"]
    tables = of_sides("{}.embeddings.make_embedding.emb_luts.0")
    copies = {tables[1]: tables[0]} if opt["share_embeddings"] else {}
    copies |= {output: tables[1]} if opt["share_decoder_embeddings"] else {}
    biased = version < 3 or bool(opt.get("add_qkvbias"))
    return Reference(Recipe(
        tables, output, within("self_attn self_attn context_attn",
        "linear_query linear_keys linear_values final_linear"),
        within("feed_forward", "w_1 w_2 w_3" if act in ("silu", "gated-gelu") else "w_1 w_2"),
        ("layer_norm feed_forward.layer_norm", "layer_norm_1 layer_norm_2 feed_forward.layer_norm"),
        ("encoder.transformer.{n}.", "decoder.transformer_layers.{n}."), of_sides("{}.layer_norm"), {"eps": 1e-6},
        scaled=True, sines=sines(0, LENGTH, 12, apart=opt.get("position_encoding_type") == "SinusoidalConcat"),
        biases=(biased, biased), ffn_bias=opt.get("add_ffnbias", True), act=NAMED.get(act, act),
        hidden=opt["transformer_ff"], heads=opt["heads"], depths=(opt["enc_layers"], opt["dec_layers"]), d=12,
        copies=copies, sizes=sizes,
    ))  # fmt: skip


class Marian(Recipe):
    """Rows [1, D] for vectors; ids from `pad` on are no pieces: padding, and the vector of zeros."""

    def norm(self, s, x, name):
        name, _, end = name.partition("!")
        centred = x - x.mean(-1, keepdim=True)
        spread = (centred.square().mean(-1, keepdim=True) + 1e-6).sqrt()
        return s.of(f"{name}_ln_scale{end}", 1, self.d, around=1.0) * centred / spread + s.of(
            f"{name}_ln_bias{end}", 1, self.d
        )

    def affine(self, s, x, name, out):
        place, _, letter = name.rpartition("_")
        return x @ s.of(f"{place}_W{letter}", x.size(-1), out) + s.of(f"{place}_b{letter}", 1, out)

    def embedded(self, s, i, ids):
        table, scale = s.of(self.tables[i]), math.sqrt(self.d)
        places = self.sines
        if places is None:  # learned ones take the place of the scale
            places, scale = s.of("Wpos", 1000, self.d), 1
        x = table[ids.clamp(max=len(table) - 1)] * (ids < self.pad)[..., None] * scale + places[: ids.size(1)]
        return self.norm(s, x, self.embedding_norms[i]) if self.embedding_norms else x

    def attend(self, s, x, y, mask, names):
        heads = [self.affine(s, z, name, self.d) for z, name in zip((x, y, y), names, strict=False)]
        return self.affine(s, attention(*heads, mask, self.heads), names[3], self.d)

    def network(self, s, x, names):
        acts = {"relu": torch.relu, "swish": F.silu, "gelu": lambda x: x * torch.sigmoid(1.702 * x)}
        return self.affine(s, acts[self.act](self.affine(s, x, names[0], self.hidden)), names[1], self.d)

    def logits(self, s, x):
        table = s.of(self.output, self.sizes[1], self.d)
        return x @ table.t() + s.of("decoder_ff_logit_out_b", 1, len(table))


def marian(options, sizes, *, learned=False):
    together = options["tied-embeddings-all"]
    tables = ("Wemb", "Wemb") if together or options["tied-embeddings-src"] else of_sides("{}_Wemb")
    top = options.get("transformer-postprocess-top", "")
    return Reference(Marian(
        tables, tables[1] if together or options["tied-embeddings"] else "decoder_ff_logit_out_Wt",
        tuple(" ".join(f"{place}_{letter}" for letter in "qkvo") for place in ("self", "self", "context")),
        ("ffn_1 ffn_2",), ("self_Wo ffn_ffn", "self_Wo context_Wo ffn_ffn"), of_sides("{}_l{{m}}_"),
        of_sides("{}_top") if "n" in top else (), before=False, end="",
        embedding_norms=of_sides("{}_emb!_pre") if "n" in options["transformer-postprocess-emb"] else (),
        sines=None if learned else sines(0, LENGTH, 12, apart=True), act=options["transformer-ffn-activation"],
        hidden=options["transformer-dim-ffn"], heads=options["transformer-heads"],
        depths=(options["enc-depth"], options["dec-depth"]), d=12, sizes=sizes, pad=max(sizes),
    ))  # fmt: skip
