// SPDX-License-Identifier: Apache-2.0
#pragma once

// Whisper in GGUF's terms, which every reader of Whisper files (Hugging Face folder, CTranslate2 folder, whisper.cpp
// file) produces.
//
// Keys, under "whisper.":
//   embedding_length, feed_forward_length, vocab_size, mel_bins (80 or 128)
//   encoder.block_count, encoder.attention.head_count, encoder.context_length (1500)
//   decoder.block_count, decoder.attention.head_count, decoder.context_length (448)
//   attention.layer_norm_epsilon
//   alignment_heads               i32 array: layer, head, layer, head, ...; absent if unknown
//   suppress_tokens, begin_suppress_tokens   i32 arrays; absent if unknown
//   language_tokens               i32 array, ids in the vocabulary's order ("tokenizer.ggml.tokens" has their texts)
// and the tokenizer's keys: model "gpt2", pre "whisper", tokens, token_type, merges, bos/eos ids.
//
// Tensors, [outputs, inputs] for matrices (d: width, m: mel bins, P: positions, V: vocabulary):
//   enc.conv1.weight [d, 3 m], enc.conv1.bias [d]         input k * m + c is tap k of channel c
//   enc.conv2.weight [d, 3 d], enc.conv2.bias [d]
//   enc.position_embd.weight [P, d]
//   enc.blk.N.attn_norm.{weight,bias}, attn_q.{weight,bias}, attn_k.weight, attn_v.{weight,bias},
//     attn_output.{weight,bias}, ffn_norm.{weight,bias}, ffn_up.{weight,bias}, ffn_down.{weight,bias}
//   enc.output_norm.{weight,bias}
//   token_embd.weight [V, d] (the output matrix too), dec.position_embd.weight [P, d]
//   dec.blk.N.* as the encoder's, and cross_attn_norm.{weight,bias}, cross_attn_q.{weight,bias}, cross_attn_k.weight,
//     cross_attn_v.{weight,bias}, cross_attn_output.{weight,bias}
//   dec.output_norm.{weight,bias}
//
// `convert` keeps convolutions and positions in float16 or better, whatever --type says.
