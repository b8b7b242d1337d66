// SPDX-License-Identifier: Apache-2.0
#include "engine/runner.hpp"

#include <algorithm>
#include <utility>

#include "base/checked.hpp"
#include "engine/buckets.hpp"

namespace consonant {

namespace {

int64_t context_of(const LanguageModel& model, const RunnerOptions& options) {
  if (options.context < 0) bad_usage("a context of {} tokens", options.context);
  return options.context > 0 ? options.context : model.context;
}

}  // namespace

Runner::Runner(const LanguageModel& model, const std::vector<WeightSource>& weights, const RunnerOptions& options)
    : model_(model),
      options_(options),
      context_(context_of(model, options)),
      pool_(std::make_unique<ThreadPool>(options.threads)),
      weights_(weights, options.device, *pool_),
      cache_(CacheRole::self, model.kv, options.kv, context_, options.sequences, options.device.accelerator.get()) {
  // What the device can't run at the largest size that a run may reach, it refuses before anything begins.
  if (options_.device.accelerator) plan_for({most_tokens, most_tokens, cache_.pages_per_sequence()});
}

int64_t Runner::bytes_needed(const LanguageModel& model, const std::vector<WeightSource>& weights,
                             const RunnerOptions& options) {
  return checked_add(WeightStore::bytes_needed(weights, options.device.kind),
                     PagedCache::bytes(model.kv, options.kv, context_of(model, options), options.sequences));
}

std::vector<Tensor> Runner::build(const Capacity& capacity) const {
  Inputs s;
  s.tokens = input("tokens", DType::i32, Shape({capacity.tokens}, Axis::token));
  s.pos = input("pos", DType::i32, Shape({capacity.tokens}, Axis::token));
  s.seq = input("seq", DType::i32, Shape({capacity.tokens}, Axis::token));
  s.pages = input("pages", DType::i32, Shape{options_.sequences, capacity.pages});
  s.wanted = input("wanted", DType::i32, Shape({capacity.wanted}, Axis::wanted));
  s.mask = {s.pos, s.seq, s.pages, 0};
  s.kv = cache_.states();
  std::vector<Tensor> outputs = {model_.logits(s)};
  for (const KvState& kv : s.kv) outputs.insert(outputs.end(), {kv.keys, kv.values});
  return outputs;
}

// An accelerator's launches are sized by the pages that a sequence may have: as many as the longest one needs, in
// powers of two, so that short texts don't pay for long ones.
Runner::Capacity Runner::capacity_for(int64_t tokens, int64_t wanted, int64_t pages) const {
  const int64_t all = cache_.pages_per_sequence();
  int64_t held = 8;
  while (held < pages) held *= 2;
  return {bucket(tokens), bucket(wanted), options_.device.accelerator ? std::min(held, all) : all};
}

Plan Runner::plan_for(const Capacity& capacity) const {
  PlanOptions options;
  options.device = options_.device;
  options.small_activations = options_.small_activations;
  options.taps = watched_;
  options.weights = &weights_;
  options.states = [this](const StateAttr& state) { return cache_.view(state); };
  return make_plan(build(capacity), options);
}

Program& Runner::program(const Capacity& capacity) {
  auto& program = programs_[capacity];
  if (!program) program = std::make_unique<Program>(plan_for(capacity));
  return *program;
}

const Plan& Runner::plan() { return program(capacity_for(1, 1, 1)).plan(); }

std::vector<Plan::Tap> Runner::all_taps() {
  const std::vector<std::string> watched = std::exchange(watched_, {"*"});
  std::vector<Plan::Tap> taps = plan_for(capacity_for(1, 1, 1)).taps;
  watched_ = watched;
  return taps;
}

void Runner::check(const Piece& piece) const {
  for (int32_t token : piece.tokens)
    if (token < 0 || token >= model_.vocabulary)
      bad_input("token id {}: the vocabulary has {} tokens", token, model_.vocabulary);
  const int64_t end = length(piece.sequence) + static_cast<int64_t>(piece.tokens.size());
  if (end > context_) bad_input("{} tokens don't fit the context of {}", end, context_);
}

std::span<const float> Runner::evaluate(std::span<const Piece> pieces) {
  for (const Piece& piece : pieces) check(piece);
  logits_.clear();
  Batch batch;
  std::vector<int> members;  // sequence of each row of pages
  const auto flush = [&] {
    if (batch.tokens.empty()) return;
    int64_t most = 1;
    for (const int member : members) most = std::max(most, cache_.pages_of(member));
    const Capacity capacity =
        capacity_for(static_cast<int64_t>(batch.tokens.size()), static_cast<int64_t>(batch.wanted.size()), most);
    const int64_t per_sequence = capacity.pages;
    batch.pages_per_sequence = static_cast<int32_t>(per_sequence);
    batch.pages.resize(members.size() * static_cast<size_t>(per_sequence));
    for (size_t i = 0; i < members.size(); ++i)
      cache_.write_pages(
          members[i],
          std::span(batch.pages).subspan(i * static_cast<size_t>(per_sequence), static_cast<size_t>(per_sequence)));
    step(batch, capacity);
    batch = {}, members.clear();
  };
  for (const Piece& piece : pieces) {
    for (size_t done = 0; done < piece.tokens.size();) {
      if (static_cast<int64_t>(batch.tokens.size()) == most_tokens) flush();
      const size_t n = std::min(piece.tokens.size() - done, static_cast<size_t>(most_tokens) - batch.tokens.size());
      int64_t position = cache_.length(piece.sequence);
      cache_.extend(piece.sequence, static_cast<int64_t>(n));
      members.push_back(piece.sequence);
      for (size_t i = 0; i < n; ++i, ++done) {
        if (piece.all_logits || done + 1 == piece.tokens.size())
          batch.wanted.push_back(static_cast<int32_t>(batch.tokens.size()));
        batch.tokens.push_back(piece.tokens[done]);
        batch.positions.push_back(static_cast<int32_t>(position++));
        batch.sequences.push_back(static_cast<int32_t>(members.size() - 1));
      }
    }
  }
  flush();
  return logits_;
}

void Runner::step(const Batch& batch, const Capacity& capacity) {
  Program& p = program(capacity);
  if (observer_)
    p.run_observed(batch, *pool_, observer_);
  else
    p.run(batch, *pool_);
  if (batch.wanted.empty()) return;
  const View out = p.output(0);
  logits_.insert(logits_.end(), out.as<float>(), out.as<float>() + out.shape.count());
  if (!watched_.empty()) taps_.keep(p);
}

void Runner::watch(const std::vector<std::string>& globs) {
  watched_ = globs;
  programs_.clear();
  taps_.take();
}

void Runner::use_threads(int threads) { pool_ = std::make_unique<ThreadPool>(threads); }

}  // namespace consonant
