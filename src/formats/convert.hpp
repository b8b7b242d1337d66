// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/gguf_writer.hpp"
#include "formats/model_file.hpp"

namespace consonant {

// What `convert --type` takes: "f32, f16, bf16, q8_0, q4_0, ...".
std::string conversion_types();

// The type of each tensor in a file of that kind, by llama.cpp's rules: vectors and norms stay f32, the output matrix
// and, for q4_k_m, some layers' attn_v and ffn_down get more bits, and rows that don't divide into blocks of 256 get a
// kind with blocks of 32. Whisper's convolutions are f16 at least, its positions f32; Silero VAD's matrices are f16 at
// least; convolutions of Qwen3-TTS's codec are f16 at least, and what picks codes f32. Wrong usage for an unknown
// kind.
std::vector<GgufTensorPlan> plan_conversion(const ModelFile& model, std::string_view type);

// Writes `model` as a GGUF file. Tensors that are quantised already stay as they are or become f32, f16 or bf16: to
// quantise twice loses accuracy that the original would have kept. `progress`, if given, hears of each tensor before it
// is written.
void convert_model(const ModelFile& model, const std::filesystem::path& out, std::string_view type, int threads = 1,
                   const std::function<void(size_t done, size_t all)>& progress = {});

}  // namespace consonant
