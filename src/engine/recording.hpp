// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "consonant/engine.hpp"
#include "engine/taps.hpp"

namespace consonant {

// What a run of a model gives a recording.
struct RecordedRun {
  std::vector<int32_t> tokens;
  std::vector<float> logits;  // [tokens, vocabulary]
  std::vector<TapRows> taps;
  std::vector<float> sound;  // that a speech model heard, of which the tokens are
};

// Exit::disagree if the runs differ in a bit; `how` says what distinguished them: "between two runs".
void check_same(const RecordedRun& a, const RecordedRun& b, std::string_view how);

// `record` with the other number of threads that the positive control wants, then the own one again.
template <class Runner, class Record>
RecordedRun with_other_threads(Runner& runner, const Record& record) {
  const int own = runner.pool().threads();
  runner.use_threads(own == 1 ? 2 : 1);
  try {
    RecordedRun run = record();
    runner.use_threads(own);
    return run;
  } catch (...) {
    runner.use_threads(own);
    throw;
  }
}

// Runs `record` three times, the last with another number of threads, and returns the run if all bits agree.
template <class Runner, class Record>
RecordedRun controlled(Runner& runner, const Record& record) {
  const RecordedRun run = record();
  check_same(run, record(), "between two runs");
  check_same(run, with_other_threads(runner, record), "between two numbers of threads");
  return run;
}

// The nodes that match are watched while it lives.
template <class Runner>
class Watch {
 public:
  Watch(Runner& runner, const std::vector<std::string>& globs) : runner_(runner) { runner_.watch(globs); }
  ~Watch() { runner_.watch({}); }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

 private:
  Runner& runner_;
};

// Writes a run whose control has passed.
void write_recording(const std::string& path, const RecordedRun& run, int64_t vocabulary, const ModelInfo& info,
                     const std::string& model_sha256, const std::string& options);

// Which of the nodes a recording has.
std::vector<std::string> recorded_taps(const std::string& recording, const std::vector<Plan::Tap>& known);

// Wrong usage for a glob that matches none of the taps.
void check_taps(const std::vector<std::string>& globs, const std::vector<Plan::Tap>& taps);

}  // namespace consonant
