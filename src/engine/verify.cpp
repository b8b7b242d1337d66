// SPDX-License-Identifier: Apache-2.0
#include "consonant/verify.hpp"

#include <algorithm>
#include <cstring>

#include "base/glob.hpp"
#include "engine/language_engine.hpp"
#include "engine/version.hpp"
#include "formats/safetensors.hpp"
#include "verify/compare.hpp"

namespace consonant {

namespace {

struct Run {
  std::vector<int32_t> tokens;
  std::vector<float> logits;  // [tokens, vocabulary]
  std::vector<Runner::TapRows> taps;
};

// The nodes that match are watched while it lives.
class Watch {
 public:
  Watch(Runner& runner, const std::vector<std::string>& globs) : runner_(runner) { runner_.watch(globs); }
  ~Watch() { runner_.watch({}); }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

 private:
  Runner& runner_;
};

// What is asked for and can't be had is said before anything runs.
void check(Runner& runner, const RecordOptions& options) {
  const int64_t context = runner.context(), steps = std::min(options.steps, context);
  if (static_cast<int64_t>(options.tokens.size()) + steps > context)
    bad_input("{} tokens and {} steps don't fit the context of {}", options.tokens.size(), options.steps, context);
  if (options.taps.empty()) return;
  const auto& taps = runner.plan().taps;
  for (const std::string& glob : options.taps)
    if (std::none_of(taps.begin(), taps.end(), [&](const auto& tap) { return glob_match(glob, tap.name); }))
      bad_usage("no node that this device computes on its own matches the tap '{}'", glob);
}

struct OpenSequence {
  Runner& runner;
  const int id = runner.open();
  ~OpenSequence() { runner.close(id); }
};

// Evaluates the tokens in one piece, then `steps` more one by one, each the most likely.
Run run_once(Runner& runner, const RecordOptions& options) {
  Run run;
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

// The same with another number of threads; the runner keeps its own.
Run run_with_threads(Runner& runner, const RecordOptions& options, int threads) {
  const int own = runner.pool().threads();
  runner.use_threads(threads);
  try {
    Run run = run_once(runner, options);
    runner.use_threads(own);
    return run;
  } catch (...) {
    runner.use_threads(own);
    throw;
  }
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

void check_same(const Run& a, const Run& b, std::string_view how) {
  const auto differ = [&](std::string_view what) {
    throw_error(Exit::disagree, "the positive control failed: {} differs {}; nothing is recorded", what, how);
  };
  if (a.tokens != b.tokens) differ("a token");
  if (a.taps.size() != b.taps.size()) differ("the number of taps");
  for (size_t i = 0; i < a.taps.size(); ++i)
    if (!same_bits(a.taps[i].rows, b.taps[i].rows)) differ(a.taps[i].name);
  if (!same_bits(a.logits, b.logits)) differ("the logits");
}

HostTensor tensor_of(DType type, Sizes sizes, const void* data) {
  HostTensor tensor = HostTensor::allocate(type, std::move(sizes));
  std::memcpy(tensor.mutable_bytes().data(), data, tensor.bytes.size());
  return tensor;
}

}  // namespace

void record(Engine& engine, const RecordOptions& options, const std::string& path) {
  LanguageEngine& language = language_engine(engine);
  Runner& runner = language.runner();
  if (options.tokens.empty()) bad_input("there are no tokens to record");
  if (options.steps < 0) bad_usage("{} steps", options.steps);
  const Watch watch(runner, options.taps);
  check(runner, options);
  const Run run = run_once(runner, options);
  check_same(run, run_once(runner, options), "between two runs");
  const int threads = runner.pool().threads(), others = threads == 1 ? 2 : 1;
  check_same(run, run_with_threads(runner, options, others), fmt::format("between {} and {} threads", threads, others));

  const auto n = static_cast<int64_t>(run.tokens.size());
  std::vector<NamedTensor> tensors;
  tensors.push_back({"tokens", tensor_of(DType::i32, {n}, run.tokens.data())});
  tensors.push_back({"logits", tensor_of(DType::f32, {n, runner.model().vocabulary}, run.logits.data())});
  std::map<std::string, std::string> header = {{"device", engine.info().device},
                                               {"precision", engine.info().precision},
                                               {"kv", engine.info().kv},
                                               {"model_sha256", engine.sha256()},
                                               {"version", version},
                                               {"options", options.options_text},
                                               {"positive_control", "passed"}};
  for (const Runner::TapRows& tap : run.taps) {
    Sizes sizes = {static_cast<int64_t>(tap.rows.size()) / element_count(tap.sizes)};
    sizes.insert(sizes.end(), tap.sizes.begin(), tap.sizes.end());
    tensors.push_back({tap.name, tensor_of(DType::f32, std::move(sizes), tap.rows.data())});
    header["source:" + tap.name] = tap.source;
  }
  write_safetensors(path, tensors, header);
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
