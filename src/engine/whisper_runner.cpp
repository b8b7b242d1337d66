// SPDX-License-Identifier: Apache-2.0
#include "engine/whisper_runner.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/checked.hpp"
#include "engine/buckets.hpp"

namespace consonant {

namespace {

template <class T>
std::span<const std::byte> bytes_of(const T& numbers) {
  return std::as_bytes(std::span(numbers));
}

Tensor per_token(const char* name, int64_t tokens) { return input(name, DType::i32, Shape({tokens}, Axis::token)); }

}  // namespace

WhisperRunner::WhisperRunner(const Whisper& model, const std::vector<WeightSource>& weights,
                             const RunnerOptions& options, int windows)
    : model_(model),
      options_(options),
      pool_(std::make_unique<ThreadPool>(options.threads)),
      weights_(weights, options.device, *pool_),
      texts_(texts_of(model, options), options.device.accelerator.get()),
      windows_(windows_of(model, options, windows), options.device.accelerator.get()),
      window_of_(static_cast<size_t>(options.sequences), -1),
      index_(static_cast<size_t>(model.positions)),
      last_(index_.size(), static_cast<int32_t>(model.positions - 1)),
      zeros_(index_.size(), 0),
      own_pages_(static_cast<size_t>(ceil_div(model.positions, kv_page))) {
  std::iota(index_.begin(), index_.end(), 0);
  std::iota(own_pages_.begin(), own_pages_.end(), 0);
  take_arenas();
}

CacheLayout WhisperRunner::texts_of(const Whisper& model, const RunnerOptions& options) {
  return {CacheRole::self, model.kv, options.kv, model.context, options.sequences};
}

CacheLayout WhisperRunner::windows_of(const Whisper& model, const RunnerOptions& options, int windows) {
  return {CacheRole::cross, model.cross_kv, options.kv, model.positions, windows};
}

// What the device can't run it refuses here, before anything begins.
void WhisperRunner::take_arenas() {
  Accelerator* const accelerator = options_.device.accelerator.get();
  if (!accelerator) return;
  encoder_arena_ = decoder_arena_ = nullptr;  // before the new ones are taken
  const auto [encoder, decoder] = setting().arenas(this);
  encoder_arena_ = std::make_shared<Buffer>(encoder, accelerator);
  decoder_arena_ = std::make_shared<Buffer>(decoder, accelerator);
}

Runner::Needs WhisperRunner::needs(const Whisper& model, const std::vector<WeightSource>& weights,
                                   const RunnerOptions& options, int windows) {
  const CacheLayout texts = texts_of(model, options), seen = windows_of(model, options, windows);
  const WeightStore planned = WeightStore::planned(weights, options.device.kind);
  const auto [encoder, decoder] = Setting{model, options, texts, seen, planned}.arenas(nullptr);
  return {planned.bytes(), checked_add(texts.bytes(), seen.bytes()), checked_add(encoder, decoder)};
}

std::pair<Plan, Plan> WhisperRunner::plan_unloaded(const Whisper& model, const std::vector<WeightSource>& weights,
                                                   const RunnerOptions& options, int windows) {
  const CacheLayout texts = texts_of(model, options), seen = windows_of(model, options, windows);
  const WeightStore planned = WeightStore::planned(weights, options.device.kind);
  const Setting setting{model, options, texts, seen, planned};
  return {setting.plan({Kind::encoder, 0, 0}, nullptr, {}), setting.plan({Kind::decoder, 1, 1}, nullptr, {})};
}

// The prompts of all texts at once want a row or two each; word times want a row of every token of a text.
std::pair<int64_t, int64_t> WhisperRunner::Setting::arenas(const WhisperRunner* states) const {
  int64_t decoder = 0;
  const auto count = [&](Kind kind, int64_t tokens, int64_t wanted) {
    decoder = std::max(decoder, plan({kind, tokens, wanted}, states, {}).arena_bytes);
  };
  const int64_t wanted = bucket(2 * options.sequences), text = bucket(model.context);
  for (const int64_t tokens : {int64_t{1}, int64_t{8}, int64_t{64}, most_tokens})
    if (options.device.accelerator || tokens == most_tokens) count(Kind::decoder, tokens, std::min(tokens, wanted));
  if (!model.alignment_heads.empty()) count(Kind::aligner, text, text);
  return {plan({Kind::encoder, 0, 0}, states, {}).arena_bytes, decoder};
}

void WhisperRunner::make_room(int sequences, int windows) {
  if (sequences <= texts_.sequences() && windows <= windows_.sequences()) return;
  options_.sequences = std::max(sequences, texts_.sequences());
  windows = std::max(windows, windows_.sequences());
  texts_ = PagedCache(texts_of(model_, options_), options_.device.accelerator.get());
  windows_ = PagedCache(windows_of(model_, options_, windows), options_.device.accelerator.get());
  window_of_.assign(static_cast<size_t>(options_.sequences), -1);
  forget_programs();  // they hold the places of the old caches
  take_arenas();
}

std::vector<Tensor> WhisperRunner::Setting::build_encoder(bool features) const {
  const int64_t positions = model.positions;
  EncoderInputs s;
  s.index = input("index", DType::i32, {positions});
  const Tensor last = input("last", DType::i32, {positions}), zeros = input("zeros", DType::i32, {positions});
  s.self = {last, zeros, input("own_pages", DType::i32, {1, ceil_div(positions, kv_page)}), 0};
  s.cross = {s.index, zeros, input("cross_pages", DType::i32, {1, windows.pages_per_sequence()}), 0};
  s.packed = options.kv == DType::f32 ? DType::f32 : DType::f16;
  s.cross_kv = windows.states();
  std::vector<Tensor> outputs;
  if (features) {
    outputs = {model.encode_features(input("features", DType::f32, {2 * positions, model.mels}), s)};
  } else {
    s.samples = input("samples", DType::f32, {model.samples()});
    s.peak = input("peak", DType::f32, {1});
    auto [encoded, peak] = model.encode(s);
    outputs = {encoded, peak};
  }
  for (const KvState& kv : s.cross_kv) outputs.insert(outputs.end(), {kv.keys, kv.values});
  return outputs;
}

std::vector<Tensor> WhisperRunner::Setting::build_decoder(int64_t tokens, int64_t wanted, bool align) const {
  Inputs s;
  s.tokens = per_token("tokens", tokens);
  s.pos = per_token("pos", tokens);
  s.seq = per_token("seq", tokens);
  s.pages = input("pages", DType::i32, {options.sequences, texts.pages_per_sequence()});
  s.wanted = input("wanted", DType::i32, Shape({wanted}, Axis::wanted));
  s.mask = {s.pos, s.seq, s.pages, 0};
  s.kv = texts.states();
  s.cross = {per_token("cross_pos", tokens), per_token("window", tokens),
             input("cross_pages", DType::i32, {windows.sequences, windows.pages_per_sequence()}), 0};
  s.cross_kv = windows.states();
  std::vector<Tensor> outputs = align ? model.align(s) : std::vector<Tensor>{model.logits(s)};
  for (const KvState& kv : s.kv) outputs.insert(outputs.end(), {kv.keys, kv.values});
  return outputs;
}

Plan WhisperRunner::Setting::plan(const Key& key, const WhisperRunner* states,
                                  const std::vector<std::string>& taps) const {
  const auto [kind, tokens, wanted] = key;
  PlanOptions plan;
  plan.device = options.device;
  plan.small_activations = options.small_activations;
  plan.taps = taps;
  plan.weights = &weights;
  plan.states = [&](const StateAttr& state) {
    const bool own = state.cache == CacheRole::self;
    return states ? (own ? states->texts_ : states->windows_).view(state) : (own ? texts : windows).view(state);
  };
  const bool encoder = kind == Kind::encoder || kind == Kind::features;
  return make_plan(
      encoder ? build_encoder(kind == Kind::features) : build_decoder(tokens, wanted, kind == Kind::aligner), plan);
}

Program& WhisperRunner::program(Kind kind, int64_t tokens, int64_t wanted) {
  const bool encoder = kind == Kind::encoder || kind == Kind::features;
  const Key key{kind, encoder ? 0 : bucket(tokens), encoder ? 0 : bucket(wanted)};
  auto& program = programs_[key];
  if (!program)
    program = std::make_unique<Program>(setting().plan(key, this, watched_), encoder ? encoder_arena_ : decoder_arena_);
  return *program;
}

void WhisperRunner::run(Program& program, const Batch& batch) {
  if (observer_)
    program.run_observed(batch, *pool_, observer_);
  else
    program.run(batch, *pool_);
  if (!watched_.empty()) taps_.keep(program);
}

int WhisperRunner::run_encoder(Kind kind, std::span<const float> numbers, float& peak) {
  Program& p = program(kind);
  const int window = windows_.open();
  windows_.extend(window, model_.positions);
  std::vector<int32_t> pages(static_cast<size_t>(windows_.pages_per_sequence()));
  windows_.write_pages(window, pages);
  Batch batch;
  batch.more = {{"index", bytes_of(index_)},
                {"last", bytes_of(last_)},
                {"zeros", bytes_of(zeros_)},
                {"own_pages", bytes_of(own_pages_)},
                {"cross_pages", bytes_of(pages)},
                {"peak", std::as_bytes(std::span(&peak, 1))},
                {kind == Kind::features ? "features" : "samples", std::as_bytes(numbers)}};
  run(p, batch);
  if (kind == Kind::encoder) peak = p.output(1).as<float>()[0];
  encoder_ = &p;
  return window;
}

std::vector<float> WhisperRunner::encoded() const {
  if (!encoder_) throw_error(Exit::failed, "no window was encoded since the programs were made");
  const View out = encoder_->output(0);
  return {out.as<float>(), out.as<float>() + out.shape.count()};
}

int WhisperRunner::encode(std::span<const float> samples, float& peak) {
  const auto wanted = static_cast<size_t>(window_samples() + 2 * margin_samples());
  if (samples.size() != wanted)
    throw_error(Exit::failed, "a window of {} samples with its margins, not {}", samples.size(), wanted);
  return run_encoder(Kind::encoder, samples.first(static_cast<size_t>(model_.samples())), peak);
}

int WhisperRunner::encode_features(std::span<const float> features) {
  const auto wanted = static_cast<size_t>(2 * model_.positions * model_.mels);
  if (features.size() != wanted) throw_error(Exit::failed, "{} features, not {}", features.size(), wanted);
  float peak = 0;
  return run_encoder(Kind::features, features, peak);
}

int WhisperRunner::open(int window) {
  const int sequence = texts_.open();
  window_of_[static_cast<size_t>(sequence)] = window;
  return sequence;
}

int WhisperRunner::fork(int sequence) {
  const int copy = texts_.fork(sequence);
  window_of_[static_cast<size_t>(copy)] = window_of_[static_cast<size_t>(sequence)];
  return copy;
}

Program& WhisperRunner::run_decoder(Kind kind, std::span<const Piece> pieces) {
  Batch batch;
  std::vector<int32_t> cross_pos, window, cross_pages;
  const int64_t own = texts_.pages_per_sequence(), of_window = windows_.pages_per_sequence();
  batch.pages_per_sequence = static_cast<int32_t>(own);
  batch.pages.resize(pieces.size() * static_cast<size_t>(own));
  cross_pages.resize(static_cast<size_t>(windows_.sequences() * of_window), -1);
  for (size_t i = 0; i < pieces.size(); ++i) {
    const Piece& piece = pieces[i];
    int64_t position = texts_.length(piece.sequence);
    const auto count = static_cast<int64_t>(piece.tokens.size());
    texts_.extend(piece.sequence, count);
    texts_.write_pages(piece.sequence,
                       std::span(batch.pages).subspan(i * static_cast<size_t>(own), static_cast<size_t>(own)));
    const int seen = window_of_[static_cast<size_t>(piece.sequence)];
    windows_.write_pages(
        seen, std::span(cross_pages).subspan(static_cast<size_t>(seen * of_window), static_cast<size_t>(of_window)));
    for (int64_t t = 0; t < count; ++t) {
      if (t >= count - piece.wanted) batch.wanted.push_back(static_cast<int32_t>(batch.tokens.size()));
      batch.tokens.push_back(piece.tokens[static_cast<size_t>(t)]);
      batch.positions.push_back(static_cast<int32_t>(position++));
      batch.sequences.push_back(static_cast<int32_t>(i));
      cross_pos.push_back(static_cast<int32_t>(model_.positions - 1));
      window.push_back(seen);
    }
  }
  batch.more = {
      {"cross_pos", bytes_of(cross_pos)}, {"window", bytes_of(window)}, {"cross_pages", bytes_of(cross_pages)}};
  Program& p = program(kind, static_cast<int64_t>(batch.tokens.size()), static_cast<int64_t>(batch.wanted.size()));
  run(p, batch);
  return p;
}

std::span<const float> WhisperRunner::evaluate(std::span<const Piece> pieces) {
  for (const Piece& piece : pieces) {
    for (const int32_t token : piece.tokens)
      if (token < 0 || token >= model_.vocabulary)
        bad_input("token id {}: the vocabulary has {} tokens", token, model_.vocabulary);
    const int64_t end = texts_.length(piece.sequence) + static_cast<int64_t>(piece.tokens.size());
    if (end > model_.context) bad_input("{} tokens don't fit the context of {}", end, model_.context);
  }
  logits_.clear();
  // A step holds up to most_tokens, prompts of many windows may be more; and no more of several than give each the bits
  // that it has alone.
  const auto most = static_cast<size_t>(std::min(most_tokens, options_.device.same_bits_to()));
  for (size_t first = 0; first < pieces.size();) {
    size_t last = first, sum = 0;
    while (last < pieces.size() && (last == first || sum + pieces[last].tokens.size() <= most))
      sum += pieces[last++].tokens.size();
    const View out = run_decoder(Kind::decoder, pieces.subspan(first, last - first)).output(0);
    logits_.insert(logits_.end(), out.as<float>(), out.as<float>() + out.shape.count());
    first = last;
  }
  return logits_;
}

WindowModel::Alignment WhisperRunner::align(int window, std::span<const int32_t> tokens, int32_t text_ids) {
  Alignment result;
  result.heads = static_cast<int64_t>(model_.alignment_heads.size());
  result.positions = model_.positions;
  const auto count = static_cast<int64_t>(tokens.size());
  if (count == 0) return result;
  if (count > model_.context) bad_input("{} tokens don't fit the context of {}", count, model_.context);
  const int sequence = open(window);
  const Piece piece{sequence, tokens, count};
  const Program& p = run_decoder(Kind::aligner, {&piece, 1});
  close(sequence);

  // Of a layer: [token, head, position].
  result.weights.resize(static_cast<size_t>(result.heads * count * result.positions));
  int64_t head = 0;
  for (size_t output = 1; head < result.heads; ++output) {
    const View layer = p.output(output);
    for (int64_t h = 0; h < layer.shape[1]; ++h, ++head)
      for (int64_t t = 0; t < count; ++t)
        std::copy_n(layer.row<float>(t * layer.shape[1] + h), result.positions,
                    result.weights.begin() + (head * count + t) * result.positions);
  }
  const View logits = p.output(0);
  result.probability.resize(tokens.size());
  if (text_ids < 0 || text_ids > model_.vocabulary)
    bad_input("{} text ids of a vocabulary of {}", text_ids, model_.vocabulary);
  for (int64_t t = 0; t + 1 < count; ++t) {
    const int32_t next = tokens[static_cast<size_t>(t + 1)];
    if (next >= text_ids) continue;
    const float* row = logits.row<float>(t);
    const float greatest = *std::max_element(row, row + text_ids);
    double sum = 0;
    for (int32_t i = 0; i < text_ids; ++i) sum += std::exp(double{row[i]} - greatest);
    result.probability[static_cast<size_t>(t)] = static_cast<float>(std::exp(double{row[next]} - greatest) / sum);
  }
  return result;
}

std::vector<Plan::Tap> WhisperRunner::planned_taps() {
  std::vector<Plan::Tap> taps = encoder_plan().taps;
  const std::vector<Plan::Tap>& more = decoder_plan().taps;
  taps.insert(taps.end(), more.begin(), more.end());
  return taps;
}

std::vector<Plan::Tap> WhisperRunner::all_taps() const {
  std::vector<Plan::Tap> taps = setting().plan({Kind::encoder, 0, 0}, this, {"*"}).taps;
  const std::vector<Plan::Tap> more = setting().plan({Kind::decoder, bucket(1), bucket(1)}, this, {"*"}).taps;
  taps.insert(taps.end(), more.begin(), more.end());
  return taps;
}

void WhisperRunner::watch(const std::vector<std::string>& globs) {
  watched_ = globs;
  forget_programs();
  taps_.take();
}

}  // namespace consonant
