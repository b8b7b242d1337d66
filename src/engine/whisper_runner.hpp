// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/paged_cache.hpp"
#include "engine/runner.hpp"
#include "engine/taps.hpp"
#include "models/whisper.hpp"
#include "tasks/window_model.hpp"

namespace consonant {

// A Whisper model on a device: its weights there, the caches of its decoder's sequences and of the windows they look
// at, and its programs. Results of a sequence don't depend on which others share its steps.
class WhisperRunner final : public WindowModel {
 public:
  // `options.sequences` texts and `windows` windows may be open at once.
  WhisperRunner(const Whisper& model, const std::vector<WeightSource>& weights, const RunnerOptions& options,
                int windows);
  // What it needs, before anything is loaded.
  static Runner::Needs needs(const Whisper& model, const std::vector<WeightSource>& weights,
                             const RunnerOptions& options, int windows);
  // The plans of its encoder and of its decoder's step of one token; nothing is loaded for them.
  static std::pair<Plan, Plan> plan_unloaded(const Whisper& model, const std::vector<WeightSource>& weights,
                                             const RunnerOptions& options, int windows);

  // Caches for at least so many texts and windows at once; none may be open.
  void make_room(int sequences, int windows);

  int64_t window_samples() const override { return model_.window_samples(); }
  int64_t margin_samples() const override { return Whisper::margin; }
  int encode(std::span<const float> samples, float& peak) override;
  void forget(int window) override { windows_.close(window); }
  int open(int window) override;
  int fork(int sequence) override;
  void close(int sequence) override { texts_.close(sequence); }
  std::span<const float> evaluate(std::span<const Piece> pieces) override;
  Alignment align(int window, std::span<const int32_t> tokens, int32_t text_ids) override;

  // A window whose features [2 * position, mel] are given.
  int encode_features(std::span<const float> features);
  // Encoder's output [position, width] of the last window.
  std::vector<float> encoded() const;

  // From now on values of the nodes that match are kept; see Runner.
  void watch(const std::vector<std::string>& globs);
  std::vector<TapRows> take_taps() { return taps_.take(); }
  void observe(Program::Observer seen) { observer_ = std::move(seen); }

  std::vector<Plan::Tap> planned_taps();    // of the encoder and of a decoder's step
  std::vector<Plan::Tap> all_taps() const;  // that could be
  const Plan& encoder_plan() { return program(Kind::encoder).plan(); }
  const Plan& decoder_plan() { return program(Kind::decoder, 1, 1).plan(); }
  int64_t text_bytes_per_position() const { return texts_.layout().bytes_per_position(); }

  const Whisper& model() const { return model_; }
  const Target& device() const { return options_.device; }
  ThreadPool& pool() { return *pool_; }
  void use_threads(int threads) { pool_ = std::make_unique<ThreadPool>(threads); }
  int64_t weight_bytes() const { return weights_.bytes(); }

 private:
  enum class Kind { encoder, features, decoder, aligner };
  using Key = std::tuple<Kind, int64_t, int64_t>;  // and capacities: tokens, wanted
  // What a step is planned for.
  struct Setting {
    const Whisper& model;
    const RunnerOptions& options;
    const CacheLayout &texts, &windows;
    const WeightStore& weights;

    std::vector<Tensor> build_encoder(bool features) const;
    std::vector<Tensor> build_decoder(int64_t tokens, int64_t wanted, bool align) const;
    Plan plan(const Key& key, const WhisperRunner* states, const std::vector<std::string>& taps) const;
    // Of the encoder; and of the largest step of the decoder or for word times. They are in use at the same time.
    std::pair<int64_t, int64_t> arenas(const WhisperRunner* states) const;
  };
  Setting setting() const { return {model_, options_, texts_.layout(), windows_.layout(), weights_}; }
  static CacheLayout texts_of(const Whisper& model, const RunnerOptions& options);
  static CacheLayout windows_of(const Whisper& model, const RunnerOptions& options, int windows);

  void forget_programs() {
    programs_.clear();
    encoder_ = nullptr;
  }
  void take_arenas();
  void run(Program& program, const Batch& batch);
  Program& program(Kind kind, int64_t tokens = 0, int64_t wanted = 0);
  int run_encoder(Kind kind, std::span<const float> numbers, float& peak);
  Program& run_decoder(Kind kind, std::span<const Piece> pieces);

  const Whisper& model_;
  RunnerOptions options_;
  std::unique_ptr<ThreadPool> pool_;
  WeightStore weights_;
  PagedCache texts_, windows_;
  std::vector<int> window_of_;                             // of a sequence
  std::shared_ptr<Buffer> encoder_arena_, decoder_arena_;  // of an accelerator
  std::map<Key, std::unique_ptr<Program>> programs_;
  std::vector<int32_t> index_, last_, zeros_, own_pages_;  // of the encoder
  const Program* encoder_ = nullptr;                       // that ran last
  std::vector<float> logits_;
  std::vector<std::string> watched_;
  TapStore taps_;
  Program::Observer observer_;
};

}  // namespace consonant
