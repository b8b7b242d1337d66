// SPDX-License-Identifier: Apache-2.0
#include "engine/codec_runner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/checked.hpp"
#include "base/error.hpp"

namespace consonant {

namespace {

// Steps of powers of two, so that there are few programs.
int64_t next_step(int64_t left, int64_t most) {
  return std::min(most, static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(left))));
}

PlanOptions plan_options(const RunnerOptions& options, const WeightStore& weights,
                         const std::vector<std::string>& taps) {
  PlanOptions plan;
  plan.device = options.device;
  plan.small_activations = options.small_activations;
  plan.taps = taps;
  plan.weights = &weights;
  return plan;
}

// Codes or indices by codebook.
std::string code_name(int64_t codebook) { return fmt::format("codes.{}", codebook); }

}  // namespace

CodecDecoderRunner::CodecDecoderRunner(const CodecDecoder& model, const std::vector<WeightSource>& weights,
                                       const RunnerOptions& options, ChunkRule rule)
    : model_(model),
      options_(options),
      rule_(rule),
      pool_(std::make_unique<ThreadPool>(options.threads)),
      weights_(weights, options.device, *pool_, options.on_weights),
      states_(model.kv, model.kept, rule.frames + rule.context, options.sequences, options.device),
      streams_(static_cast<size_t>(options.sequences)) {
  if (rule.frames < 1 || rule.context < 0)
    throw_error(Exit::failed, "chunks of {} frames after {}", rule.frames, rule.context);
}

int CodecDecoderRunner::open() {
  const int stream = states_.open();
  streams_[static_cast<size_t>(stream)] = {};
  return stream;
}

void CodecDecoderRunner::close(int stream) { states_.close(stream); }

void CodecDecoderRunner::watch(const std::vector<std::string>& globs) {
  watched_ = globs;
  programs_.clear();
  arena_ = nullptr;
  taps_.take();
}

Plan CodecDecoderRunner::plan(int64_t frames) {
  PlanOptions plan = plan_options(options_, weights_, watched_);
  plan.states = [this](const StateAttr& state) { return states_.view(state); };
  StreamInputs s = states_.inputs(frames);
  std::vector<Tensor> codes;
  for (int64_t i = 0; i < model_.codebooks; ++i) codes.push_back(input(code_name(i), DType::i32, {frames}));
  std::vector<Tensor> outputs = {model_.samples(codes, s)};
  StreamStates::add_outputs(s, outputs);
  return make_plan(outputs, plan);
}

// What an accelerator can't run it refuses with the largest step's plan, before anything is decoded.
Program& CodecDecoderRunner::program(int64_t frames) {
  Accelerator* const accelerator = options_.device.accelerator.get();
  if (accelerator && !arena_) arena_ = std::make_shared<Buffer>(plan(most_frames).arena_bytes, accelerator);
  std::unique_ptr<Program>& program = programs_[frames];
  if (!program) program = std::make_unique<Program>(plan(frames), arena_);
  return *program;
}

void CodecDecoderRunner::step(int stream, std::span<const int32_t> codes, std::vector<float>* samples) {
  const auto books = static_cast<size_t>(model_.codebooks);
  const size_t frames = codes.size() / books;
  std::vector<std::vector<int32_t>> columns(books);
  for (size_t i = 0; i < codes.size(); ++i) columns[i % books].push_back(codes[i]);
  Batch batch;
  for (size_t i = 0; i < books; ++i)
    batch.more.push_back({code_name(static_cast<int64_t>(i)), std::as_bytes(std::span(columns[i]))});
  Program& p = program(static_cast<int64_t>(frames));
  states_.next(stream, static_cast<int64_t>(frames), batch);
  if (observer_)
    p.run_observed(batch, *pool_, observer_);
  else
    p.run(batch, *pool_);
  if (!watched_.empty()) taps_.keep(p);
  if (!samples) return;
  const View out = p.output(0);
  samples->insert(samples->end(), out.as<float>(), out.as<float>() + out.shape.count());
}

void CodecDecoderRunner::steps(int stream, std::span<const int32_t> codes, std::vector<float>* samples) {
  const auto books = static_cast<size_t>(model_.codebooks);
  while (!codes.empty()) {
    const int64_t frames = next_step(static_cast<int64_t>(codes.size() / books), most_frames);
    step(stream, codes.first(static_cast<size_t>(frames) * books), samples);
    codes = codes.subspan(static_cast<size_t>(frames) * books);
  }
}

// A chunk that begins forgets what was before its context, as if it were decoded alone.
std::vector<float> CodecDecoderRunner::decode(int stream, std::span<const int32_t> codes) {
  const auto books = static_cast<size_t>(model_.codebooks);
  if (codes.size() % books != 0) bad_input("{} codes aren't whole frames of {}", codes.size(), books);
  for (const int32_t code : codes)
    if (code < 0 || code >= model_.codebook_size)
      bad_input("code {}: a codebook has {} entries", code, model_.codebook_size);
  Stream& own = streams_[static_cast<size_t>(stream)];
  std::vector<float> samples;
  samples.reserve(codes.size() / books * static_cast<size_t>(model_.samples_per_frame));
  while (!codes.empty()) {
    if (own.decoded == rule_.frames) {
      states_.restart(stream);
      steps(stream, own.context, nullptr);
      own.decoded = 0;
    }
    const auto left = static_cast<size_t>(rule_.frames - own.decoded);
    const std::span<const int32_t> part = codes.first(std::min(codes.size(), left * books));
    steps(stream, part, &samples);
    own.decoded += static_cast<int64_t>(part.size() / books);
    own.context.insert(own.context.end(), part.begin(), part.end());
    const size_t keep = std::min(own.context.size(), static_cast<size_t>(rule_.context) * books);
    own.context.erase(own.context.begin(), own.context.end() - static_cast<std::ptrdiff_t>(keep));
    codes = codes.subspan(part.size());
  }
  return samples;
}

CodecEncoderRunner::CodecEncoderRunner(const CodecEncoder& model, const std::vector<WeightSource>& weights,
                                       const RunnerOptions& options)
    : model_(model),
      options_(options),
      pool_(std::make_unique<ThreadPool>(options.threads)),
      weights_(weights, options.device, *pool_, options.on_weights) {}

void CodecEncoderRunner::watch(const std::vector<std::string>& globs) {
  watched_ = globs;
  programs_.clear();
  rest_ = nullptr;
  taps_.take();
}

// The cache grows with the longest recording.
void CodecEncoderRunner::make_room(int64_t positions) {
  if (states_ && states_->positions() >= positions) return;
  programs_.clear();  // they hold the places of the old cache
  rest_ = nullptr;
  states_ = nullptr;
  const auto room = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(positions, 512))));
  states_ = std::make_unique<StreamStates>(model_.kv, model_.kept, room, 1, options_.device);
}

Program& CodecEncoderRunner::program(int64_t samples) {
  const bool whole = samples % model_.samples_per_frame == 0;
  std::unique_ptr<Program>& program = whole ? programs_[samples] : rest_;
  if (program && (whole || rest_samples_ == samples)) return *program;
  if (!whole) rest_samples_ = samples;
  PlanOptions plan = plan_options(options_, weights_, watched_);
  plan.states = [this](const StateAttr& state) { return states_->view(state); };
  StreamInputs s = states_->inputs(model_.positions(samples));
  std::vector<Tensor> outputs = model_.codes(input("samples", DType::f32, {samples, 1}), s);
  StreamStates::add_outputs(s, outputs);
  program = std::make_unique<Program>(make_plan(outputs, plan));
  return *program;
}

void CodecEncoderRunner::step(int stream, std::span<const float> samples, std::vector<int32_t>& codes) {
  const auto count = static_cast<int64_t>(samples.size());
  Program& p = program(count);
  Batch batch;
  batch.more.push_back({"samples", std::as_bytes(samples)});
  states_->next(stream, model_.positions(count), batch);
  p.run(batch, *pool_);
  if (!watched_.empty()) taps_.keep(p);
  const auto frames = static_cast<size_t>(ceil_div(count, model_.samples_per_frame)),
             books = static_cast<size_t>(model_.codebooks), first = codes.size();
  codes.resize(first + frames * books);
  for (size_t book = 0; book < books; ++book) {
    const View out = p.output(book);
    for (size_t f = 0; f < frames; ++f) codes[first + f * books + book] = out.as<int32_t>()[f];
  }
}

std::vector<int32_t> CodecEncoderRunner::encode(std::span<const float> samples) {
  make_room(model_.positions(static_cast<int64_t>(samples.size())));
  const int stream = states_->open();
  std::vector<int32_t> codes;
  try {
    while (!samples.empty()) {
      const auto whole = static_cast<int64_t>(samples.size()) / model_.samples_per_frame;
      const auto count =
          whole > 0 ? static_cast<size_t>(next_step(whole, most_frames) * model_.samples_per_frame) : samples.size();
      step(stream, samples.first(count), codes);
      samples = samples.subspan(count);
    }
  } catch (...) {
    states_->close(stream);
    throw;
  }
  states_->close(stream);
  return codes;
}

SpeakerRunner::SpeakerRunner(const SpeakerEncoder& model, const std::vector<WeightSource>& weights,
                             const RunnerOptions& options)
    : model_(model),
      options_(options),
      pool_(std::make_unique<ThreadPool>(options.threads)),
      weights_(weights, options.device, *pool_, options.on_weights) {}

Program& SpeakerRunner::program(int64_t samples) {
  if (program_ && samples_ == samples) return *program_;
  program_ = nullptr;  // its memory first
  const Tensor features = model_.features(input("samples", DType::f32, {samples + 2 * SpeakerEncoder::margin}));
  program_ = std::make_unique<Program>(
      make_plan({model_.embedding(features), features}, plan_options(options_, weights_, {})));
  samples_ = samples;
  return *program_;
}

// The recording is mirrored at its ends.
Program& SpeakerRunner::run(std::span<const float> samples) {
  const auto count = static_cast<int64_t>(samples.size());
  constexpr int64_t margin = SpeakerEncoder::margin;
  const int64_t least = std::max(model_.least_samples(), margin + 1);
  if (count < least)
    bad_input("a voice of {} samples: {} are needed, {:.0f} ms", count, least,
              1000 * static_cast<double>(least) / SpeakerEncoder::rate);
  std::vector<float> mirrored(static_cast<size_t>(count + 2 * margin));
  for (int64_t i = -margin; i < count + margin; ++i) {
    const int64_t from = i < 0 ? -i : i >= count ? 2 * (count - 1) - i : i;
    mirrored[static_cast<size_t>(i + margin)] = samples[static_cast<size_t>(from)];
  }
  Batch batch;
  batch.more.push_back({"samples", std::as_bytes(std::span(mirrored))});
  Program& p = program(count);
  p.run(batch, *pool_);
  return p;
}

std::vector<float> SpeakerRunner::embed(std::span<const float> samples) {
  const View out = run(samples).output(0);
  return {out.as<float>(), out.as<float>() + out.shape.count()};
}

std::vector<float> SpeakerRunner::features(std::span<const float> samples) {
  const View out = run(samples).output(1);
  return {out.as<float>(), out.as<float>() + out.shape.count()};
}

}  // namespace consonant
