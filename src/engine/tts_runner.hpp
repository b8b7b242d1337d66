// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "decode/codebooks.hpp"
#include "engine/paged_cache.hpp"
#include "engine/runner.hpp"
#include "engine/taps.hpp"
#include "engine/tts_steps.hpp"
#include "models/qwen3_tts.hpp"
#include "runtime/program.hpp"

namespace consonant {

// A Qwen3-TTS talker and its code predictor on a device: their weights there, the cache of the talker's sequences, and
// the programs. Results of a sequence don't depend on which others share its steps.
class TtsRunner final : public FrameModel {
 public:
  TtsRunner(const Qwen3Tts& model, const std::vector<WeightSource>& weights, const RunnerOptions& options);
  // What it needs, before anything is loaded.
  static Runner::Needs needs(const Qwen3Tts& model, const std::vector<WeightSource>& weights,
                             const RunnerOptions& options);
  // The plan of a frame; nothing is loaded for it. Exit::device for what a runner would refuse.
  static Plan plan_unloaded(const Qwen3Tts& model, const std::vector<WeightSource>& weights,
                            const RunnerOptions& options);

  int sequences() const override { return options_.sequences; }
  int open(std::span<const float> voice) override;
  void close(int sequence) override { cache_.close(sequence); }
  std::vector<Frame> frames(std::span<const FramePiece> pieces) override;

  // The talker's state [row, width] at each of a sequence's next positions, which are read.
  std::vector<float> states(int sequence, const FrameRows& rows);

  int64_t context() const { return cache_.layout().positions; }
  const Qwen3Tts& model() const { return model_; }
  const Target& device() const { return options_.device; }
  ThreadPool& pool() { return *pool_; }
  void use_threads(int threads) { pool_ = std::make_unique<ThreadPool>(threads); }
  int64_t weight_bytes() const { return weights_.bytes(); }
  double weights_s() const { return weights_.seconds(); }
  int64_t kv_bytes_per_position() const { return cache_.layout().bytes_per_position(); }
  const Plan& plan() { return program({1, 1, pages_for(1), DrawInputs::least_slots, false}).plan(); }

  // From now on values of the nodes that match are kept; steps run a node at a time and `seen` looks on; the kernels of
  // the next step are timed. See Runner.
  void watch(const std::vector<std::string>& globs);
  std::vector<TapRows> take_taps() { return taps_.take(); }
  std::vector<Plan::Tap> all_taps() const;
  void observe(Program::Observer seen) { observer_ = std::move(seen); }
  void time_kernels(std::vector<Program::KernelTime>* to) { times_ = to; }

 private:
  // The numbers of a step, which the batch's spans point into.
  struct Numbers;

  TtsPlanner planner() const { return {model_, options_, cache_.layout(), frame_cache_.layout(), weights_}; }
  View view(const StateAttr& state) const;
  int64_t pages_for(int64_t pages) const;
  Program& program(const TtsStep& step);
  void check(const FramePiece& piece) const;
  // Reads rows `first` to `last` of pieces, which are all of one row but where there is one piece alone; `draws`: and
  // draws their frames.
  const Program& step(std::span<const FramePiece> pieces, int64_t first, int64_t last, int64_t wanted, bool draws);
  void take_frames(const Program& program, std::span<const FramePiece> pieces, std::vector<Frame>& frames) const;

  const Qwen3Tts& model_;
  RunnerOptions options_;
  std::unique_ptr<ThreadPool> pool_;
  WeightStore weights_;
  PagedCache cache_, frame_cache_;
  std::vector<int32_t> frame_pages_;
  std::vector<float> voices_;  // [sequence, width]
  std::shared_ptr<Buffer> arena_;
  std::map<TtsStep, std::unique_ptr<Program>> programs_;
  std::vector<std::string> watched_;
  TapStore taps_;
  Program::Observer observer_;
  std::vector<Program::KernelTime>* times_ = nullptr;
};

}  // namespace consonant
