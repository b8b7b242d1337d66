// SPDX-License-Identifier: Apache-2.0
#include "models/language_model.hpp"

#include <string>

namespace consonant {

#define MODEL(arch, type) std::unique_ptr<LanguageModel> load_##arch(const ModelFile& file, const Weights& weights);
#include "models/all.def"
#undef MODEL

std::unique_ptr<LanguageModel> load_language_model(const ModelFile& file, const Weights& weights) {
  const std::string_view architecture = file.meta->string("general.architecture");
  std::string known;
#define MODEL(arch, type)                                       \
  if (architecture == #arch) return load_##arch(file, weights); \
  known += known.empty() ? #arch : ", " #arch;
#include "models/all.def"
#undef MODEL
  if (architecture == "whisper")
    bad_input("{}: holds a Whisper model, which transcribes sound and is no language model", file.meta->source);
  bad_input("{}: the architecture '{}' is not known; known are {}", file.meta->source, architecture, known);
}

}  // namespace consonant
