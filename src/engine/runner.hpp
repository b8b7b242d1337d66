// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "models/language_model.hpp"
#include "runtime/program.hpp"

namespace consonant {

struct RunnerOptions {
  DeviceKind device = DeviceKind::cpu;
  int threads = 1;
  bool small_activations = true;  // 8-bit activations in products with quantised weights
  DType kv = DType::f16;
  int64_t context = 0;  // positions a sequence may hold; 0: the model's
  int sequences = 1;    // that may be open at once
};

// Tokens that one sequence reads in a step.
struct Piece {
  int sequence;
  std::span<const int32_t> tokens;
  bool all_logits = false;  // of every token, or of the last only
};

// A language model on a device: its weights there, its paged caches, its programs, and the sequences in the cache.
// Results of a sequence don't depend on which others share its steps.
class Runner {
 public:
  Runner(const LanguageModel& model, const std::vector<WeightSource>& weights, const RunnerOptions& options);

  int open();  // a new, empty sequence; an error if all are taken
  void close(int sequence);
  void truncate(int sequence, int64_t length);  // forgets all positions from `length` on
  int64_t length(int sequence) const;

  // Reads the pieces, which belong to different sequences, after what their caches hold. Logits in the order of the
  // pieces' wanted rows; valid until the next call. Token ids must be of the vocabulary and the positions fit the
  // context: otherwise bad input, before anything ran.
  std::span<const float> evaluate(std::span<const Piece> pieces);

  // From the next evaluate on, values of the nodes that match are kept: `rows` of each tap grow with every step.
  struct TapRows {
    std::string name, source;
    Sizes sizes;  // of a token: [head, dim] or [n]
    std::vector<float> rows;
  };
  void watch(const std::vector<std::string>& globs);
  std::vector<TapRows> take_taps();

  const LanguageModel& model() const { return model_; }
  ThreadPool& pool() { return *pool_; }
  void use_threads(int threads);
  int64_t context() const { return context_; }
  int64_t weight_bytes() const { return weights_.bytes(); }
  int64_t kv_bytes_per_position() const;
  const Plan& plan();  // of a step of one token

  // What a runner with these options will need, before anything is loaded; the cache counts at `context` positions.
  static int64_t bytes_needed(const LanguageModel& model, const std::vector<WeightSource>& weights,
                              const RunnerOptions& options);

 private:
  struct Sequence {
    bool open = false;
    int64_t length = 0;
    std::vector<int32_t> pages;
  };

  Program& program(int64_t tokens, int64_t wanted);
  std::vector<Tensor> build(int64_t tokens, int64_t wanted) const;
  View state_view(const StateAttr& state) const;
  void check(const Piece& piece) const;
  void reserve(Sequence& sequence, int64_t length);
  void step(const Batch& batch);
  void keep_taps(const Program& program);

  const LanguageModel& model_;
  RunnerOptions options_;
  int64_t context_, pages_per_sequence_;
  std::unique_ptr<ThreadPool> pool_;
  WeightStore weights_;
  std::vector<Buffer> keys_, values_;  // a layer each
  std::vector<int32_t> free_pages_;
  std::vector<Sequence> sequences_;
  std::map<std::pair<int64_t, int64_t>, std::unique_ptr<Program>> programs_;
  std::vector<float> logits_;
  std::vector<std::string> watched_;
  std::vector<TapRows> taps_;  // in the order of the plan, which is the same for all programs
};

}  // namespace consonant
