// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/runner.hpp"
#include "engine/stream_states.hpp"
#include "engine/taps.hpp"
#include "models/qwen3_tts_codec.hpp"
#include "models/qwen3_tts_speaker.hpp"

namespace consonant {

// How the reference decodes what is long: pieces of `frames`, each together with the `context` frames before it, whose
// samples are dropped.
struct ChunkRule {
  int64_t frames = 300, context = 25;
};

// Sound from codes, on a device: the decoder's weights there, its programs, and streams that codes are added to. A
// stream's samples don't depend on how its codes are cut into calls, nor on other streams.
class CodecDecoderRunner {
 public:
  static constexpr int64_t most_frames = 16;  // a step

  CodecDecoderRunner(const CodecDecoder& model, const std::vector<WeightSource>& weights, const RunnerOptions& options,
                     ChunkRule rule = {});

  int open();  // one of options.sequences
  void close(int stream);
  // The samples of further frames: codes [frame, codebook]. Bad input for a code that isn't of the codebook, or for
  // numbers that aren't whole frames; nothing is decoded then.
  std::vector<float> decode(int stream, std::span<const int32_t> codes);

  const CodecDecoder& model() const { return model_; }
  int64_t weight_bytes() const { return weights_.bytes(); }
  int64_t state_bytes() const { return states_.bytes(); }

  // From now on values of the nodes that match are kept; see Runner.
  void watch(const std::vector<std::string>& globs);
  std::vector<TapRows> take_taps() { return taps_.take(); }
  void observe(Program::Observer seen) { observer_ = std::move(seen); }

 private:
  // Of a stream: the codes of its last frames, and how many frames of its chunk are decoded.
  struct Stream {
    std::vector<int32_t> context;
    int64_t decoded = 0;
  };

  Plan plan(int64_t frames);
  Program& program(int64_t frames);
  void step(int stream, std::span<const int32_t> codes, std::vector<float>* samples);
  void steps(int stream, std::span<const int32_t> codes, std::vector<float>* samples);

  const CodecDecoder& model_;
  RunnerOptions options_;
  ChunkRule rule_;
  std::unique_ptr<ThreadPool> pool_;
  WeightStore weights_;
  StreamStates states_;
  std::vector<Stream> streams_;
  std::shared_ptr<Buffer> arena_;                         // an accelerator's, of all programs
  std::map<int64_t, std::unique_ptr<Program>> programs_;  // by frames
  std::vector<std::string> watched_;
  TapStore taps_;
  Program::Observer observer_;
};

// Codes of a recording, on a device. It is read in steps, so memory is bounded but for the attention's cache, which has
// 12.5 positions twice a second.
class CodecEncoderRunner {
 public:
  static constexpr int64_t most_frames = 16;

  CodecEncoderRunner(const CodecEncoder& model, const std::vector<WeightSource>& weights, const RunnerOptions& options);

  // [frame, codebook], a frame for each begun 80 ms.
  std::vector<int32_t> encode(std::span<const float> samples);

  void watch(const std::vector<std::string>& globs);
  std::vector<TapRows> take_taps() { return taps_.take(); }

 private:
  Program& program(int64_t samples);
  void make_room(int64_t positions);
  void step(int stream, std::span<const float> samples, std::vector<int32_t>& codes);

  const CodecEncoder& model_;
  RunnerOptions options_;
  std::unique_ptr<ThreadPool> pool_;
  WeightStore weights_;
  std::unique_ptr<StreamStates> states_;
  std::map<int64_t, std::unique_ptr<Program>> programs_;  // of whole frames, by samples
  std::unique_ptr<Program> rest_;                         // of the samples of the last frame, which seldom recur
  int64_t rest_samples_ = 0;
  std::vector<std::string> watched_;
  TapStore taps_;
};

// The voice of a recording, on a device.
class SpeakerRunner {
 public:
  SpeakerRunner(const SpeakerEncoder& model, const std::vector<WeightSource>& weights, const RunnerOptions& options);

  // Of samples at the model's rate; bad input if there are fewer than it needs.
  std::vector<float> embed(std::span<const float> samples);
  // [frame, mels].
  std::vector<float> features(std::span<const float> samples);

 private:
  Program& program(int64_t samples);
  Program& run(std::span<const float> samples);

  const SpeakerEncoder& model_;
  RunnerOptions options_;
  std::unique_ptr<ThreadPool> pool_;
  WeightStore weights_;
  std::unique_ptr<Program> program_;  // for recordings of the last one's length
  int64_t samples_ = 0;
};

}  // namespace consonant
