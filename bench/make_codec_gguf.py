#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes Qwen3-TTS's codec at its published size with random weights, to measure speed and memory.

    python3 make_codec_gguf.py OUT.gguf [--f32] [--no-encoder]

Shapes and names are those of the real file, values are normal numbers that keep activations near one. Needs the `gguf`
and `numpy` packages.
"""
import argparse
import math

import numpy as np
from gguf import GGUFWriter

RATES, RATIOS, CODEBOOKS, ENTRIES, DIM = [8, 5, 4, 3], [2, 2], 16, 2048, 256
QUANTIZER, LATENT, DECODER, WIDTH, INNER, FF, LAYERS = 512, 1024, 1536, 512, 1024, 1024, 8


class Writer:
    def __init__(self, path, wide):
        self.out = GGUFWriter(path, "qwen3tts_tokenizer")
        self.random = np.random.default_rng(1)
        self.wide = wide

    def add(self, name, shape, spread=None, exact=False):
        """`spread`: of values about zero; without it they are those of a layer that keeps its input's size."""
        if spread is None:
            spread = 1 / math.sqrt(max(1, math.prod(shape[1:])))
        values = self.random.standard_normal(shape, dtype=np.float32) * np.float32(spread)
        plain = self.wide or exact or len(shape) == 1
        self.out.add_tensor(name, values if plain else values.astype(np.float16))

    def ones(self, name, n):
        self.out.add_tensor(name, np.ones(n, dtype=np.float32))

    def conv(self, name, shape, outputs=None):
        self.add(name + "w", shape)
        self.add(name + "b", (outputs or shape[0],), 0.01)


def decoder(w):
    for name in ["rvq_first.codebook"] + [f"rvq_rest.{i}.codebook" for i in range(CODEBOOKS - 1)]:
        w.add("codec.dec." + name, (ENTRIES, DIM), 0.3, exact=True)
    for branch in ("first", "rest"):
        w.add(f"codec.dec.rvq_{branch}.out_proj_w", (QUANTIZER, DIM, 1))
    w.conv("codec.dec.pre_conv_", (LATENT, QUANTIZER, 3))
    w.conv("codec.dec.xfmr.in_proj_", (WIDTH, LATENT))
    for i in range(LAYERS):
        p = f"codec.dec.xfmr.blk.{i}."
        for norm in ("attn_norm_w", "ffn_norm_w"):
            w.ones(p + norm, WIDTH)
        for part, shape in (("q", (INNER, WIDTH)), ("k", (INNER, WIDTH)), ("v", (INNER, WIDTH)), ("o", (WIDTH, INNER))):
            w.add(f"{p}attn_{part}_w", shape)
        for part, shape in (("gate", (FF, WIDTH)), ("up", (FF, WIDTH)), ("down", (WIDTH, FF))):
            w.add(f"{p}ffn_{part}_w", shape)
        for scale in ("attn_ls_w", "ffn_ls_w"):
            w.add(p + scale, (WIDTH,), 0.01)
    w.ones("codec.dec.xfmr.norm_w", WIDTH)
    w.conv("codec.dec.xfmr.out_proj_", (LATENT, WIDTH))
    for s, r in enumerate(RATIOS):
        p = f"codec.dec.up.{s}."
        w.conv(p + "tconv_", (LATENT, LATENT, r))
        w.conv(p + "cnx.dw_", (LATENT, 1, 7))
        w.ones(p + "cnx.norm_w", LATENT)
        w.add(p + "cnx.norm_b", (LATENT,), 0.01)
        w.conv(p + "cnx.pw1_", (4 * LATENT, LATENT))
        w.conv(p + "cnx.pw2_", (LATENT, 4 * LATENT))
        w.add(p + "cnx.gamma", (LATENT,), 0.1)
    w.conv("codec.dec.in_conv_", (DECODER, LATENT, 7))
    n = DECODER

    def snake(name, channels):
        for part in ("a", "b"):
            w.add(name + part, (channels,), 0.3)

    for b, r in enumerate(RATES):
        p = f"codec.dec.blk.{b}."
        snake(p + "snake_", n)
        w.conv(p + "tconv_", (n, n // 2, 2 * r), n // 2)
        n //= 2
        for u in range(3):
            q = f"{p}res.{u}."
            snake(q + "act1_", n)
            w.conv(q + "conv1_", (n, n, 7))
            snake(q + "act2_", n)
            w.conv(q + "conv2_", (n, n, 1))
    snake("codec.dec.out_snake_", n)
    w.conv("codec.dec.out_conv_", (1, n, 7))


def encoder(w):
    n = 64
    w.conv("codec.enc.seanet.init_", (n, 1, 7))
    for i, stride in enumerate((4, 5, 6, 8)):
        w.conv(f"codec.enc.seanet.blk.{i}.short_", (n // 2, n, 3))
        w.conv(f"codec.enc.seanet.blk.{i}.exp_", (n, n // 2, 1))
        w.conv(f"codec.enc.seanet.ds.{i}.", (2 * n, n, 2 * stride))
        n *= 2
    w.conv("codec.enc.seanet.final_", (512, n, 3))
    for i in range(8):
        p = f"codec.enc.xfmr.blk.{i}."
        for norm in ("norm1_", "norm2_"):
            w.ones(p + norm + "w", 512)
            w.add(p + norm + "b", (512,), 0.01)
        for part in "qkvo":
            w.add(f"{p}attn_{part}_w", (512, 512))
        w.add(p + "fc1_w", (2048, 512))
        w.add(p + "fc2_w", (512, 2048))
        for scale in ("attn_ls", "ffn_ls"):
            w.add(p + scale, (512,), 0.01)
    w.add("codec.enc.ds_w", (512, 512, 4))
    for branch in ("sem", "ac"):
        w.add(f"codec.enc.rvq.{branch}.in_w", (DIM, 512, 1), exact=True)
        w.add(f"codec.enc.rvq.{branch}.out_w", (512, DIM, 1), exact=True)
    for name in ["sem.cb"] + [f"ac.{i}.cb" for i in range(CODEBOOKS - 1)]:
        w.add("codec.enc.rvq." + name, (ENTRIES, DIM), 0.3, exact=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out")
    parser.add_argument("--f32", action="store_true", help="matrices in float32, not float16")
    parser.add_argument("--no-encoder", action="store_true")
    args = parser.parse_args()
    w = Writer(args.out, args.f32)
    for key, value in {"input_sample_rate": 24000, "output_sample_rate": 24000, "encode_downsample": 1920,
                       "decode_upsample": 1920, "dec.n_layers": LAYERS, "dec.d_model": WIDTH, "dec.n_heads": 16,
                       "dec.ff_dim": FF, "dec.n_quantizers": CODEBOOKS, "dec.codebook_size": ENTRIES,
                       "dec.latent_dim": LATENT, "dec.decoder_dim": DECODER, "dec.sliding_window": 72,
                       "dec.head_dim": 64, "dec.max_pos": 8000}.items():
        w.out.add_uint32("qwen3tts_codec." + key, value)
    w.out.add_float32("qwen3tts_codec.frame_rate", 12.5)
    w.out.add_float32("qwen3tts_codec.dec.rope_theta", 1e4)
    w.out.add_float32("qwen3tts_codec.dec.rms_norm_eps", 1e-5)
    w.out.add_array("qwen3tts_codec.dec.upsample_rates", RATES)
    w.out.add_array("qwen3tts_codec.dec.upsampling_ratios", RATIOS)
    decoder(w)
    if not args.no_encoder:
        encoder(w)
    w.out.write_header_to_file()
    w.out.write_kv_data_to_file()
    w.out.write_tensors_to_file()
    w.out.close()


if __name__ == "__main__":
    main()
