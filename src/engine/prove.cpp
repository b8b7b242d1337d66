// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.hpp"
#include "consonant/verify.hpp"
#include "engine/buckets.hpp"
#include "engine/count_kernels.hpp"
#include "engine/language_engine.hpp"
#include "engine/recorded_speech.hpp"
#include "engine/speech_engine.hpp"
#include "engine/version.hpp"
#include "verify/compare.hpp"
#include "verify/forced_routing.hpp"
#include "verify/lockstep.hpp"

namespace consonant {

namespace {

// Whoever looks on stops when this ends.
template <class Runner>
struct Watching {
  Runner& runner;
  explicit Watching(Runner& runner) : runner(runner) {}
  ~Watching() { runner.observe({}); }
};

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

Agreement begin(const ModelInfo& info, const Target& device) {
  Agreement result;
  result.model = info.path, result.device = info.device, result.version = version;
  if (device.accelerator) result.driver = device.accelerator->info().driver + ", " + device.accelerator->info().target;
  return result;
}

// Whether all of it is in float32. In a q8_0 cache a difference in the last bit may become one of a hundredth.
bool is_exact(const ModelInfo& info) { return info.precision == "f32" && info.kv != "q8_0"; }

// What both gave, twice each.
struct Logits {
  std::vector<float> reference, reference_again, device, device_again;
};

void judge_logits(Agreement& result, const Logits& logits, int64_t vocabulary, bool exact) {
  result.least_cosine = exact ? 0.999999 : 0.9999;
  const TensorDistance d =
      distance("logits", logits.reference, logits.device, vocabulary, result.least_cosine, exact ? 1e-3 : 5e-2);
  result.worst_cosine = d.cosine, result.max_abs = d.max_abs;
  result.decisions = d.rows, result.disagreements = d.argmax_disagreements;
  result.agree = result.positive_control && d.within_tolerance && d.argmax_disagreements == 0 &&
                 result.choices_drift <= result.most_drift;
}

void judge_nodes(Agreement& result, const Lockstep& lockstep, const Lockstep& free) {
  std::map<std::string, double> drift;
  for (const NodeDifference& d : free.nodes()) drift[d.name] = d.error;
  for (const NodeDifference& d : lockstep.nodes()) {
    result.nodes.push_back({d.name, d.op, d.kernel, d.source, d.error, d.tolerance, drift[d.name], d.within()});
    if (d.within() || !result.first_divergent_node.empty()) continue;
    result.first_divergent_node = d.name, result.source = d.source;
  }
  result.not_compared = lockstep.not_compared();
  result.agree = result.agree && result.first_divergent_node.empty();
}

// Both run the same step, first the reference.
template <class Runner, class Observers, class Step>
void together(Runner& reference, Runner& device, Observers& observers, const Step& step) {
  const Watching first(reference), second(device);
  reference.observe(observers.reference());
  step(reference);
  device.observe(observers.device());
  step(device);
}

// ---- language models

struct Sequence {
  Runner& runner;
  const int id = runner.open();
  explicit Sequence(Runner& runner) : runner(runner) {}
  ~Sequence() { runner.close(id); }

  std::span<const float> read(std::span<const int32_t> tokens) {
    const Piece piece{id, tokens, true};
    return runner.evaluate({&piece, 1});
  }
};

std::vector<float> all_logits(Runner& runner, const std::vector<int32_t>& tokens) {
  Sequence sequence(runner);
  const auto logits = sequence.read(tokens);
  return {logits.begin(), logits.end()};
}

// A step at a time, so that the reference's values of one step are all that is kept. The device's logits.
template <class Observers>
std::vector<float> read_together(Runner& reference, Runner& device, const std::vector<int32_t>& tokens,
                                 Observers& observers) {
  Sequence a(reference), b(device);
  std::vector<float> logits;
  for (size_t at = 0; at < tokens.size(); at += static_cast<size_t>(most_tokens)) {
    const auto part = std::span(tokens).subspan(at, std::min(tokens.size() - at, static_cast<size_t>(most_tokens)));
    together(reference, device, observers, [&](Runner& runner) {
      const std::span<const float> read = (&runner == &reference ? a : b).read(part);
      if (&runner == &device) logits.insert(logits.end(), read.begin(), read.end());
    });
  }
  return logits;
}

bool has_experts(const Agreement& result) {
  return std::any_of(result.kernels.begin(), result.kernels.end(), [](const auto& k) { return k.first == "route"; });
}

// Once more with the reference's experts, where the device would choose others.
void force_routing(Agreement& result, Runner& reference, Runner& device, const std::vector<int32_t>& tokens,
                   std::vector<float>& logits, bool exact) {
  ForcedRouting routing;
  std::vector<float> forced = read_together(reference, device, tokens, routing);
  result.choices = routing.choices(), result.choices_differ = routing.differing();
  result.choices_drift = routing.worst_drift(), result.most_drift = exact ? 1e-4 : 2e-2;
  if (result.choices_differ > 0) logits = std::move(forced);
}

}  // namespace

Agreement prove(Engine& reference, Engine& device, const std::vector<int32_t>& tokens) {
  if (tokens.empty()) bad_input("there are no tokens to evaluate");
  LanguageEngine &a = language_engine(reference), &b = language_engine(device);
  Agreement result = begin(b.info(), b.target());
  result.kernels = count_kernels({&b.runner().plan()});
  Logits logits{all_logits(a.runner(), tokens), all_logits(a.runner(), tokens), all_logits(b.runner(), tokens),
                all_logits(b.runner(), tokens)};
  result.positive_control =
      same_bits(logits.reference, logits.reference_again) && same_bits(logits.device, logits.device_again);
  const bool exact = is_exact(b.info());
  if (has_experts(result)) force_routing(result, a.runner(), b.runner(), tokens, logits.device, exact);
  judge_logits(result, logits, a.info().vocabulary, exact);
  Lockstep lockstep(true), free(false);
  read_together(a.runner(), b.runner(), tokens, lockstep);
  read_together(a.runner(), b.runner(), tokens, free);
  judge_nodes(result, lockstep, free);
  return result;
}

void prove_window(Agreement& result, WhisperRunner& reference, WhisperRunner& device, const std::vector<float>& samples,
                  const std::vector<int32_t>& tokens, bool exact) {
  result.kernels = count_kernels({&device.encoder_plan(), &device.decoder_plan()});
  const auto logits_of = [&](WhisperRunner& runner) { return hear_once(runner, samples, tokens).logits; };
  const Logits logits{logits_of(reference), logits_of(reference), logits_of(device), logits_of(device)};
  result.positive_control =
      same_bits(logits.reference, logits.reference_again) && same_bits(logits.device, logits.device_again);
  judge_logits(result, logits, reference.model().vocabulary, exact);
  Lockstep lockstep(true), free(false);
  for (Lockstep* way : {&lockstep, &free}) {
    // The encoder first: the texts look at the window that each has of its own.
    std::unique_ptr<OpenWindow> first, second;
    together(reference, device, *way, [&](WhisperRunner& runner) {
      (&runner == &reference ? first : second) = std::make_unique<OpenWindow>(runner, samples);
    });
    OpenText one(*first), two(*second);
    together(reference, device, *way, [&](WhisperRunner& runner) {
      const WindowModel::Piece piece{(&runner == &reference ? one : two).id, tokens,
                                     static_cast<int64_t>(tokens.size())};
      runner.evaluate({&piece, 1});
    });
  }
  judge_nodes(result, lockstep, free);
}

Agreement prove(Transcriber& reference, Transcriber& device, AudioInput& audio, const SpeechRecordOptions& options) {
  SpeechEngine &a = speech_engine(reference), &b = speech_engine(device);
  Agreement result = begin(b.info(), b.runner().device());
  const std::vector<float> samples = first_window(audio, a.runner()).samples;
  std::vector<int32_t> tokens = options.tokens;
  if (tokens.empty()) tokens = a.greedy_tokens(OpenWindow(a.runner(), samples).id, options.transcribe);
  prove_window(result, a.runner(), b.runner(), samples, tokens, is_exact(b.info()));
  return result;
}

}  // namespace consonant
