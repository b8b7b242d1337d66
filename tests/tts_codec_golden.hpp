// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/codec_runner.hpp"
#include "engine/model_setup.hpp"
#include "formats/model_file.hpp"
#include "tests/golden.hpp"

namespace consonant {

inline const std::string tts_data = CONSONANT_TEST_DATA "/tts/";
// The same numbers: through a converter, and as published.
inline const std::string codec_gguf = tts_data + "gguf-codec/tiny-tokenizer-12hz-f16.gguf",
                         codec_folder = tts_data + "tiny-base/speech_tokenizer",
                         talker_gguf = tts_data + "gguf-base/tiny-base-f16.gguf";

// A part of a file and its runner.
template <class Model, class Runner>
struct LoadedPart {
  ModelFile file;
  Weights weights;
  Model model;
  Runner runner;

  template <class... More>
  LoadedPart(const std::string& path, const RunnerOptions& options, More... more)
      : file(open_model(path)),
        weights(file),
        model(file, weights),
        runner(model, sources_of(file, weights), options, more...) {}
};
using LoadedDecoder = LoadedPart<CodecDecoder, CodecDecoderRunner>;
using LoadedEncoder = LoadedPart<CodecEncoder, CodecEncoderRunner>;
using LoadedSpeaker = LoadedPart<SpeakerEncoder, SpeakerRunner>;

inline RunnerOptions exactly_on(const std::string& device, int threads = 2, int streams = 1) {
  RunnerOptions options;
  options.device = device == "reference" ? Target(DeviceKind::reference) : open_target(device);
  options.threads = threads, options.small_activations = false, options.kv = DType::f32;
  options.sequences = streams;
  return options;
}

// The first `columns` of [rows, all] as [columns, rows]: the reference has channels first.
inline std::vector<float> transposed(const std::vector<float>& x, size_t rows, size_t columns) {
  const size_t all = x.size() / rows;
  std::vector<float> y(columns * rows);
  for (size_t r = 0; r < rows; ++r)
    for (size_t c = 0; c < columns; ++c) y[c * rows + r] = x[r * all + c];
  return y;
}

}  // namespace consonant
