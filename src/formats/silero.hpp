// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "formats/model_file.hpp"

namespace consonant {

class MappedFile;

// Whether the file is one of those that Silero VAD comes as: safetensors, or ONNX (silero_vad.onnx,
// silero_vad_16k_op15.onnx), of which the weights for 16 kHz are read. Neither says what it is, so the names of its
// tensors are what it is known by.
bool is_silero_vad(const MappedFile& file);

// Opens it as architecture "silero_vad". Keys, under "silero_vad.":
//   sample_rate (16000), window (512), context (64: samples of the window before), embedding_length (128)
// Tensors, n of width 128 and 64; input k * c + i of a convolution is tap k of channel i:
//   stft.weight [2 (n_fft / 2 + 1), n_fft]         cosines, then sines, of one frame
//   enc.0 ... enc.3.{weight [outputs, 3 inputs], bias}
//   lstm.input.{weight [4 n, n], bias [4 n]}, lstm.hidden.{weight, bias}    gates in the order i, f, g, o
//   output.{weight [1, n], bias [1]}
ModelFile open_silero_vad(const std::filesystem::path& path);

}  // namespace consonant
