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

LanguageModel::Outputs LanguageModel::outputs(Inputs&, const Tensor&) const {
  bad_usage("the model's hidden states are of no use to anyone");
}

std::unique_ptr<LanguageModel> load_deepseek2_head(const ModelFile& file, const Weights& weights);
std::unique_ptr<LanguageModel> load_nemotron_h_moe_head(const ModelFile& file, const Weights& weights);

std::unique_ptr<LanguageModel> load_next_token_head(const ModelFile& file, const Weights& weights) {
  const std::string architecture(file.meta->string("general.architecture"));
  const bool deepseek = architecture == "deepseek2";
  if (!deepseek && architecture != "nemotron_h_moe")
    bad_input("{}: no head for further tokens is known of '{}'; there are those of deepseek2 and nemotron_h_moe",
              file.meta->source, architecture);
  const std::string key = architecture + ".nextn_predict_layers";
  const int64_t heads = file.meta->integer(key, 0);
  if (heads != 1)
    bad_input("{}: {} is {}, so there is {}", file.meta->source, key, heads,
              heads == 0 ? "no head for further tokens" : "more than the one head that is known");
  return deepseek ? load_deepseek2_head(file, weights) : load_nemotron_h_moe_head(file, weights);
}

}  // namespace consonant
