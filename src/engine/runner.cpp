// SPDX-License-Identifier: Apache-2.0
#include "engine/runner.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/checked.hpp"
#include "engine/buckets.hpp"
#include "ops/sample/sample.hpp"

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
  if (!options_.device.accelerator) return;
  plan_for({most_tokens, most_tokens, cache_.pages_per_sequence()});
  if (draws_on_device())
    plan_for({most_tokens, bucket(options_.sequences), cache_.pages_per_sequence(), DrawInputs::most_slots});
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
  const Tensor logits = model_.logits(s);
  std::vector<Tensor> outputs = {logits};
  if (capacity.slots > 0) {  // the logits stay, to say what is wrong with them if nothing can be drawn
    const auto [token, log_probability] = DrawInputs::sample_from(logits, capacity.wanted, capacity.slots);
    outputs.insert(outputs.end(), {token, log_probability});
  }
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
  read(pieces, {}, {});
  return logits_;
}

bool Runner::draws_on_device() const {
  return options_.device.accelerator != nullptr && model_.vocabulary <= most_drawn_from;
}

std::vector<Drawn> Runner::evaluate_and_draw(std::span<const Piece> pieces, std::span<const Draw> draws) {
  if (pieces.size() != draws.size()) throw_error(Exit::failed, "{} draws for {} pieces", draws.size(), pieces.size());
  for (const Piece& piece : pieces)
    if (piece.all_logits || piece.tokens.empty()) throw_error(Exit::failed, "a draw is from one row of logits");
  if (draws_on_device()) {
    const DrawInputs inputs(draws, model_.vocabulary);
    if (inputs.fit()) {
      read(pieces, draws, inputs);
      return drawn_;
    }
  }
  read(pieces, {}, {});
  drawn_.clear();
  const auto row = static_cast<size_t>(model_.vocabulary);
  for (size_t i = 0; i < draws.size(); ++i)
    drawn_.push_back(draw_from(std::span<const float>(logits_).subspan(i * row, row), draws[i]));
  return drawn_;
}

// With draws it ends in drawn_, else in logits_.
void Runner::read(std::span<const Piece> pieces, std::span<const Draw> draws, const DrawInputs& inputs) {
  for (const Piece& piece : pieces) check(piece);
  logits_.clear();
  drawn_.clear();
  Batch batch;
  std::vector<int> members;  // sequence of each row of pages
  const auto flush = [&] {
    if (batch.tokens.empty()) return;
    int64_t most = 1;
    for (const int member : members) most = std::max(most, cache_.pages_of(member));
    Capacity capacity =
        capacity_for(static_cast<int64_t>(batch.tokens.size()), static_cast<int64_t>(batch.wanted.size()), most);
    const int64_t per_sequence = capacity.pages;
    batch.pages_per_sequence = static_cast<int32_t>(per_sequence);
    batch.pages.resize(members.size() * static_cast<size_t>(per_sequence));
    for (size_t i = 0; i < members.size(); ++i)
      cache_.write_pages(
          members[i],
          std::span(batch.pages).subspan(i * static_cast<size_t>(per_sequence), static_cast<size_t>(per_sequence)));
    const std::span<const Draw> mine = draws.empty() ? draws : draws.subspan(drawn_.size(), batch.wanted.size());
    if (!mine.empty()) capacity.slots = inputs.slots(), batch.more = inputs.rows(drawn_.size(), mine.size());
    step(batch, capacity, mine);
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
}

void Runner::step(const Batch& batch, const Capacity& capacity, std::span<const Draw> draws) {
  Program& p = program(capacity);
  if (observer_)
    p.run_observed(batch, *pool_, observer_);
  else
    p.run(batch, *pool_);
  if (batch.wanted.empty()) return;
  if (draws.empty()) {
    const View out = p.output(0);
    logits_.insert(logits_.end(), out.as<float>(), out.as<float>() + out.shape.count());
  } else {
    take_drawn(p, draws);
  }
  if (!watched_.empty()) taps_.keep(p);
}

void Runner::take_drawn(const Program& program, std::span<const Draw> draws) {
  program.bring({1, 2});
  const View tokens = program.output(1), log_probabilities = program.output(2);
  for (size_t i = 0; i < draws.size(); ++i) {
    const int32_t token = tokens.as<int32_t>()[i];
    if (token < 0) {  // the same logits say the same to the sampler, which knows the words for it
      const View logits = program.output(0);
      draw_from({logits.row<float>(static_cast<int64_t>(i)), static_cast<size_t>(logits.last())}, draws[i]);
      throw_error(Exit::failed, "{} draws no token from logits that have one", name(options_.device.kind));
    }
    drawn_.push_back({token, draws[i].log_probability ? log_probabilities.as<float>()[i] : NAN});
  }
}

void Runner::watch(const std::vector<std::string>& globs) {
  watched_ = globs;
  programs_.clear();
  taps_.take();
}

void Runner::use_threads(int threads) { pool_ = std::make_unique<ThreadPool>(threads); }

}  // namespace consonant
