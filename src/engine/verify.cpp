// SPDX-License-Identifier: Apache-2.0
#include "consonant/verify.hpp"

#include <algorithm>
#include <string>

#include "engine/language_engine.hpp"
#include "engine/recording.hpp"
#include "formats/safetensors.hpp"
#include "verify/compare.hpp"

namespace consonant {

namespace {

// What is asked for and can't be had is said before anything runs.
void check(Runner& runner, const RecordOptions& options) {
  const int64_t context = runner.context(), steps = std::min(options.steps, context);
  if (static_cast<int64_t>(options.tokens.size()) + steps > context)
    bad_input("{} tokens and {} steps don't fit the context of {}", options.tokens.size(), options.steps, context);
  if (!options.taps.empty()) check_taps(options.taps, runner.plan().taps);
}

struct OpenSequence {
  Runner& runner;
  const int id = runner.open();
  ~OpenSequence() { runner.close(id); }
};

// Evaluates the tokens in one piece, then `steps` more one by one, each the most likely.
RecordedRun run_once(Runner& runner, const RecordOptions& options) {
  RecordedRun run;
  const OpenSequence sequence{runner};
  const auto evaluate = [&](std::span<const int32_t> tokens) {
    const Piece piece{sequence.id, tokens, true};
    const auto logits = runner.evaluate({&piece, 1});
    run.tokens.insert(run.tokens.end(), tokens.begin(), tokens.end());
    run.logits.insert(run.logits.end(), logits.begin(), logits.end());
  };
  evaluate(options.tokens);
  for (int64_t i = 0; i < options.steps; ++i) {
    const auto last = run.logits.end() - runner.model().vocabulary;
    const int32_t next = static_cast<int32_t>(std::max_element(last, run.logits.end()) - last);
    evaluate({&next, 1});
  }
  run.taps = runner.take_taps();
  return run;
}

}  // namespace

void record(Engine& engine, const RecordOptions& options, const std::string& path) {
  LanguageEngine& language = language_engine(engine);
  Runner& runner = language.runner();
  if (options.tokens.empty()) bad_input("there are no tokens to record");
  if (options.steps < 0) bad_usage("{} steps", options.steps);
  const Watch watch(runner, options.taps);
  check(runner, options);
  const RecordedRun run = controlled(runner, [&] { return run_once(runner, options); });
  write_recording(path, run, runner.model().vocabulary, engine.info(), engine.sha256(), options.options_text);
}

std::vector<int32_t> recorded_tokens(const std::string& recording) {
  const SafetensorsFile file = SafetensorsFile::open(recording);
  if (!file.find("tokens") || !file.find("logits"))
    bad_input("{}: no recording of a model's run: it has no tokens and logits", recording);
  const HostTensor tensor = file.tensor("tokens");
  if (tensor.type != DType::i32 || tensor.sizes.size() != 1)
    bad_input("{}: its tokens are {} {}, not int32 [n]", recording, name(tensor.type), to_string(tensor.sizes));
  const auto* ids = reinterpret_cast<const int32_t*>(tensor.bytes.data());
  return {ids, ids + tensor.sizes[0]};
}

std::vector<std::string> recorded_taps(const std::string& recording, const std::vector<Plan::Tap>& known) {
  std::vector<std::string> names;
  const SafetensorsFile file = SafetensorsFile::open(recording);
  for (const SafetensorsEntry& entry : file.entries())
    if (std::any_of(known.begin(), known.end(), [&](const Plan::Tap& tap) { return tap.name == entry.name; }))
      names.push_back(entry.name);
  return names;
}

void replay(Engine& engine, const std::string& recording, const std::string& path) {
  if (recorded_sound(recording))
    bad_input("{}: the recording of a speech model, which {} isn't", recording, engine.info().path);
  RecordOptions options;
  options.tokens = recorded_tokens(recording);
  for (const int32_t id : options.tokens)
    if (id < 0 || id >= engine.info().vocabulary)
      bad_input("{}: token id {}, but the model's go from 0 to {}", recording, id, engine.info().vocabulary - 1);
  options.taps = recorded_taps(recording, language_engine(engine).runner().all_taps());
  options.options_text = "replay of " + recording;
  record(engine, options, path);
}

Comparison compare(const std::string& a, const std::string& b) {
  const RecordingDistance found = compare_recordings(a, b);
  Comparison result;
  result.positive_control = found.controlled;
  result.not_compared = found.only_in_one;
  result.agree = found.controlled;
  for (const TensorDistance& d : found.tensors) {
    result.nodes.push_back({d.name, d.source, d.cosine, d.max_abs, d.max_rel, d.argmax_changes, d.within_tolerance});
    result.agree = result.agree && d.within_tolerance;
    if (d.name == "logits") {
      result.worst_cosine = d.cosine, result.max_abs = d.max_abs;
      result.decisions = d.rows, result.disagreements = d.argmax_disagreements;
      result.agree = result.agree && d.argmax_disagreements == 0;
    } else if (!d.within_tolerance && result.first_divergent_node.empty()) {
      result.first_divergent_node = d.name, result.source = d.source;
    }
  }
  return result;
}

}  // namespace consonant
