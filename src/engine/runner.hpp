// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "decode/sampler.hpp"
#include "engine/draw_inputs.hpp"
#include "engine/paged_cache.hpp"
#include "engine/slot_store.hpp"
#include "engine/taps.hpp"
#include "models/language_model.hpp"
#include "runtime/program.hpp"

namespace consonant {

struct RunnerOptions {
  Target device;
  int threads = 1;
  bool small_activations = true;  // 8-bit activations in products with quantised weights
  DType kv = DType::f16;
  int64_t context = 0;  // positions a sequence may hold; 0: the model's
  int sequences = 1;    // that may be open at once
  int marks = 0;        // states of Mamba layers that are kept besides those of the sequences
  int64_t rows = 1;     // of a sequence's tokens in a step of a generation that are followed by a draw
  bool hidden = false;  // hidden states of all tokens come back (LanguageModel::outputs)
  WeightStore::OnProgress on_weights = {};
};

// Tokens that one sequence reads in a step.
struct Piece {
  int sequence;
  std::span<const int32_t> tokens;
  bool all_logits = false;             // of every token, or of the last only
  int64_t rows = 1;                    // those that are the last
  std::span<const float> hidden = {};  // of a model that reads them: [token, width], of the position before each
};

// A language model on a device: its weights there, its paged cache and its slots of state, its programs, and the
// sequences.
// Results of a sequence don't depend on which others share its steps.
class Runner {
 public:
  Runner(const LanguageModel& model, const std::vector<WeightSource>& weights, const RunnerOptions& options);

  PagedCache& cache() { return cache_; }
  SlotStore& slots() { return slots_; }
  int open() { return cache_.open(); }  // a new, empty sequence; an error if all are taken
  void close(int sequence) { cache_.close(sequence); }
  int fork(int sequence);  // a copy, which goes on by itself
  // Forgets all positions from `length` on. A model whose state is one of all positions can forget all of them or none:
  // anything else is wrong usage.
  void truncate(int sequence, int64_t length);
  // Keeps the state of the sequence's Mamba layers as number `mark`, below options.marks; and brings the sequence back
  // to it, which has been only read on since then, from the `length` that it had.
  void mark(int sequence, int mark);
  void go_back(int sequence, int mark, int64_t length);
  // The most positions, up to `length`, that truncate can keep.
  int64_t keepable(int sequence, int64_t length) const;
  // What a sequence holds on the device: its pages of the cache, then its slots of state. Of so many positions it has
  // parts_bytes.
  std::vector<std::span<std::byte>> parts(int sequence) const;
  int64_t parts_bytes(int64_t length) const;
  int64_t length(int sequence) const { return cache_.length(sequence); }

  // Reads the pieces, which belong to different sequences, after what their caches hold. Logits in the order of the
  // pieces' wanted rows; valid until the next call. Token ids must be of the vocabulary and the positions fit the
  // context: otherwise bad input, before anything ran.
  std::span<const float> evaluate(std::span<const Piece> pieces);

  // Reads the pieces, each of one token at least and with the last one's logits alone, and draws the token that follows
  // each. An accelerator draws where its logits are, so that a step brings back a few numbers. The tokens are those
  // that draw_from gives with the logits of `evaluate`, and so are the errors.
  std::vector<Drawn> evaluate_and_draw(std::span<const Piece> pieces, std::span<const Draw> draws);
  // Reads what the sequence lacks of `how.history`, whose last `guessed` tokens are a guess at what is drawn, and draws
  // what follows before each of them, as long as it is the guessed one, and after them: one token at least. The
  // sampler has then taken as many numbers. The sequence holds all of the history.
  std::vector<Drawn> evaluate_and_draw_along(int sequence, const Draw& how, size_t guessed);
  // With options.hidden, of the tokens that were read last [token, width]; valid until the next call.
  std::span<const float> hidden() const { return hidden_; }
  // Whether it does so without bringing the logits.
  bool draws_on_device() const { return setting().draws_on_device(); }

  // From the next evaluate on, values of the nodes that match are kept.
  using TapRows = consonant::TapRows;
  void watch(const std::vector<std::string>& globs);
  std::vector<TapRows> take_taps() { return taps_.take(); }
  // From the next evaluate on, steps run a node at a time and `seen` looks on; an empty one ends that.
  void observe(Program::Observer seen) { observer_ = std::move(seen); }
  // The kernels of the next step are timed as well; null ends that.
  void time_kernels(std::vector<Program::KernelTime>* to) { times_ = to; }

  const LanguageModel& model() const { return model_; }
  ThreadPool& pool() { return *pool_; }
  const Target& device() const { return options_.device; }
  void use_threads(int threads);
  int64_t context() const { return context_; }
  int64_t weight_bytes() const { return weights_.bytes(); }
  int64_t kv_bytes_per_position() const { return cache_.layout().bytes_per_position(); }
  int64_t slot_bytes() const { return slots_.layout().bytes_per_slot(); }
  const Plan& plan();                 // of a step of one token
  std::vector<Plan::Tap> all_taps();  // every node that could be watched

  // What a runner with these options needs, before anything is loaded.
  struct Needs {
    int64_t weights = 0;
    int64_t cache = 0;  // at options.context positions, and slots
    int64_t arena = 0;  // values of the largest step of a generation
    int64_t bytes() const;
  };
  double weights_s() const { return weights_.seconds(); }
  // The cache and the slots of such a runner.
  static CacheLayout layout_of(const LanguageModel& model, const RunnerOptions& options);
  static SlotLayout slots_of(const LanguageModel& model, const RunnerOptions& options);
  static Needs needs(const LanguageModel& model, const std::vector<WeightSource>& weights,
                     const RunnerOptions& options);
  // The plan of a generation's step of one token, at the full context; nothing is loaded for it. Exit::device as
  // make_plan throws it, for what a runner would refuse.
  static Plan plan_unloaded(const LanguageModel& model, const std::vector<WeightSource>& weights,
                            const RunnerOptions& options);

 private:
  // Capacities of a program: tokens, wanted rows, pages a sequence; and where it ends in a draw, not in logits, tokens
  // whose logits may change before.
  struct Capacity {
    int64_t tokens, wanted, pages, slots = 0;
    auto operator<=>(const Capacity&) const = default;
  };
  // Where the states are.
  struct States {
    const PagedCache& cache;
    const SlotStore& slots;
    View view(const StateAttr& state) const;
  };
  // What a step is planned for.
  struct Setting {
    const LanguageModel& model;
    const RunnerOptions& options;
    const CacheLayout& cache;
    const SlotLayout& slots;
    const WeightStore& weights;

    bool draws_on_device() const;
    std::vector<Tensor> build(const Capacity& capacity) const;
    View view(const StateAttr& state) const;
    Plan plan(const Capacity& capacity, const States* states, const std::vector<std::string>& taps) const;
    int64_t largest_arena(const States* states) const;
  };
  Setting setting() const { return {model_, options_, cache_.layout(), slots_.layout(), weights_}; }
  States states() const { return {cache_, slots_}; }
  Capacity capacity_for(int64_t tokens, int64_t wanted, int64_t pages) const;
  Plan plan_for(const Capacity& capacity) const;
  Program& program(const Capacity& capacity);
  void check(const Piece& piece) const;
  void read(std::span<const Piece> pieces, std::span<const Draw> draws, const DrawInputs& inputs);
  void step(const Batch& batch, const Capacity& capacity, std::span<const Draw> draws);
  void take_drawn(const Program& program, std::span<const Draw> draws);

  const LanguageModel& model_;
  RunnerOptions options_;
  int64_t context_;
  std::unique_ptr<ThreadPool> pool_;
  WeightStore weights_;
  PagedCache cache_;
  SlotStore slots_;
  std::shared_ptr<Buffer> arena_;  // an accelerator's, of all programs that a generation runs
  std::map<Capacity, std::unique_ptr<Program>> programs_;
  std::vector<float> logits_, hidden_;
  std::vector<Drawn> drawn_;
  std::vector<std::string> watched_;
  TapStore taps_;
  Program::Observer observer_;
  std::vector<Program::KernelTime>* times_ = nullptr;
};

}  // namespace consonant
