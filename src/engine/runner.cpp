// SPDX-License-Identifier: Apache-2.0
#include "engine/runner.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/checked.hpp"
#include "device/spin.hpp"
#include "engine/buckets.hpp"
#include "ops/sample/sample.hpp"

namespace consonant {

namespace {

int64_t context_of(const LanguageModel& model, const RunnerOptions& options) {
  if (options.context < 0) bad_usage("a context of {} tokens", options.context);
  return options.context > 0 ? options.context : model.context;
}

void check_spin(const Plan& plan, const std::string& node) {
  for (const auto& wave : plan.waves)
    for (const PlannedNode& planned : wave)
      if (planned.node->name == node) return;
  const auto& last = plan.waves.empty() ? std::vector<PlannedNode>() : plan.waves.back();
  bad_usage("a spin at '{}', but no node of a step of one token has that name; the last is '{}'", node,
            last.empty() ? "none" : last.back().node->name);
}

}  // namespace

Runner::Runner(const LanguageModel& model, const std::vector<WeightSource>& weights, const RunnerOptions& options)
    : model_(model),
      options_(options),
      context_(context_of(model, options)),
      pool_(std::make_unique<ThreadPool>(options.threads)),
      weights_(weights, options.device, *pool_, options.on_weights),
      cache_(layout_of(model, options), options.device.accelerator.get()),
      slots_(slots_of(model, options), options.device.accelerator.get()) {
  // What the device can't run at the largest sizes that a run may reach, it refuses before anything begins.
  if (Accelerator* accelerator = options_.device.accelerator.get()) {
    plan_for({most_tokens, most_tokens, cache_.pages_per_sequence()});
    const SpinningDevice* spins = find_spinning(*accelerator);
    if (spins && !spins->spin_node().empty()) check_spin(plan_for(capacity_for(1, 1, 1)), spins->spin_node());
    const States held = states();
    arena_ = std::make_shared<Buffer>(setting().largest_arena(&held), accelerator);
  }
}

CacheLayout Runner::layout_of(const LanguageModel& model, const RunnerOptions& options) {
  return {CacheRole::self, model.kv, options.kv, context_of(model, options), options.sequences};
}

SlotLayout Runner::slots_of(const LanguageModel& model, const RunnerOptions& options) {
  return {model.mamba, options.sequences + options.marks};
}

int64_t Runner::Needs::bytes() const { return checked_add(checked_add(weights, cache), arena); }

Runner::Needs Runner::needs(const LanguageModel& model, const std::vector<WeightSource>& weights,
                            const RunnerOptions& options) {
  const CacheLayout cache = layout_of(model, options);
  const SlotLayout slots = slots_of(model, options);
  const WeightStore planned = WeightStore::planned(weights, options.device.kind);
  return {planned.bytes(), checked_add(cache.bytes(), slots.bytes()),
          Setting{model, options, cache, slots, planned}.largest_arena(nullptr)};
}

Plan Runner::plan_unloaded(const LanguageModel& model, const std::vector<WeightSource>& weights,
                           const RunnerOptions& options) {
  const CacheLayout cache = layout_of(model, options);
  const SlotLayout slots = slots_of(model, options);
  const WeightStore planned = WeightStore::planned(weights, options.device.kind);
  const Setting setting{model, options, cache, slots, planned};
  const int64_t pages = cache.pages_per_sequence();
  if (options.device.accelerator) setting.plan({most_tokens, most_tokens, pages}, nullptr, {});
  return setting.plan({1, 1, pages, setting.draws_on_device() ? DrawInputs::least_slots : 0}, nullptr, {});
}

// Of the steps that a generation is made of.
int64_t Runner::Setting::largest_arena(const States* states) const {
  int64_t most = 0;
  const int64_t wanted = bucket(options.sequences * options.rows), pages = cache.pages_per_sequence();
  const auto count = [&](const Capacity& capacity) { most = std::max(most, plan(capacity, states, {}).arena_bytes); };
  if (!options.device.accelerator) {
    count({most_tokens, wanted, pages});
    return most;
  }
  // Fewer tokens may need more: attention splits the texts of few tokens into more parts.
  for (const int64_t tokens : {int64_t{1}, int64_t{8}, int64_t{64}, most_tokens}) {
    count({tokens, std::min(tokens, wanted), pages});
    if (draws_on_device()) count({tokens, std::min(tokens, wanted), pages, DrawInputs::most_slots});
  }
  return most;
}

std::vector<Tensor> Runner::Setting::build(const Capacity& capacity) const {
  Inputs s;
  s.tokens = input("tokens", DType::i32, Shape({capacity.tokens}, Axis::token));
  s.pos = input("pos", DType::i32, Shape({capacity.tokens}, Axis::token));
  s.seq = input("seq", DType::i32, Shape({capacity.tokens}, Axis::token));
  s.pages = input("pages", DType::i32, Shape{options.sequences, capacity.pages});
  s.wanted = input("wanted", DType::i32, Shape({capacity.wanted}, Axis::wanted));
  s.mask = {s.pos, s.seq, s.pages, 0};
  s.kv = cache.states();
  s.slots = {s.pos, s.seq, input("slots", DType::i32, {options.sequences})};
  s.mamba = slots.states();
  Tensor logits, hidden;
  if (options.hidden) {
    if (model.reads_hidden) hidden = input("hidden", DType::f32, Shape({capacity.tokens, model.width}, Axis::token));
    const LanguageModel::Outputs both = model.outputs(s, hidden);
    logits = both.logits, hidden = both.hidden;
  } else {
    logits = model.logits(s);
  }
  std::vector<Tensor> outputs = {logits};
  if (capacity.slots > 0) {  // the logits stay, to say what is wrong with them if nothing can be drawn
    const auto [token, log_probability] = DrawInputs::sample_from(logits, capacity.wanted, capacity.slots);
    outputs.insert(outputs.end(), {token, log_probability});
  }
  if (hidden) outputs.push_back(hidden);
  for (const KvState& kv : s.kv)
    for (const Tensor& last : {kv.keys, kv.values})
      if (last) outputs.push_back(last);
  for (const MambaState& m : s.mamba) outputs.insert(outputs.end(), {m.conv, m.ssm});
  return outputs;
}

namespace {

bool is_slot(const StateAttr& state) { return state.kind == StateKind::conv || state.kind == StateKind::ssm; }

}  // namespace

View Runner::States::view(const StateAttr& state) const {
  return is_slot(state) ? slots.view(state) : cache.view(state);
}

View Runner::Setting::view(const StateAttr& state) const {
  return is_slot(state) ? slots.view(state) : cache.view(state);
}

Plan Runner::Setting::plan(const Capacity& capacity, const States* states, const std::vector<std::string>& taps) const {
  PlanOptions plan;
  plan.device = options.device;
  plan.small_activations = options.small_activations;
  plan.taps = taps;
  plan.weights = &weights;
  plan.states = [&](const StateAttr& state) { return states ? states->view(state) : view(state); };
  return make_plan(build(capacity), plan);
}

bool Runner::Setting::draws_on_device() const {
  return options.device.accelerator != nullptr && model.vocabulary <= most_drawn_from;
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
  const States held = states();
  return setting().plan(capacity, &held, watched_);
}

Program& Runner::program(const Capacity& capacity) {
  auto& program = programs_[capacity];
  if (!program) program = std::make_unique<Program>(plan_for(capacity), arena_);
  return *program;
}

const Plan& Runner::plan() { return program(capacity_for(1, 1, 1)).plan(); }

std::vector<Plan::Tap> Runner::all_taps() {
  const std::vector<std::string> watched = std::exchange(watched_, {"*"});
  std::vector<Plan::Tap> taps = plan_for(capacity_for(1, 1, 1)).taps;
  watched_ = watched;
  return taps;
}

int Runner::fork(int sequence) {
  const int copy = cache_.fork(sequence);
  slots_.copy(sequence, copy);
  return copy;
}

std::vector<std::span<std::byte>> Runner::parts(int sequence) const {
  std::vector<std::span<std::byte>> parts = cache_.parts(sequence);
  const auto slots = slots_.parts(sequence);
  parts.insert(parts.end(), slots.begin(), slots.end());
  return parts;
}

int64_t Runner::parts_bytes(int64_t length) const {
  const CacheLayout& cache = cache_.layout();
  return checked_add(checked_mul(ceil_div(length, kv_page) * kv_page, cache.bytes_per_position()), slot_bytes());
}

int64_t Runner::keepable(int sequence, int64_t length) const {
  return model_.mamba.empty() || length >= this->length(sequence) ? length : 0;
}

void Runner::truncate(int sequence, int64_t length) {
  if (length != keepable(sequence, length))
    bad_usage(
        "a sequence of {} positions can't be cut to {}: this model's Mamba layers keep one state of all positions, not "
        "one of each; it can be cleared, or forked where it is to be cut",
        this->length(sequence), length);
  cache_.truncate(sequence, length);
}

void Runner::mark(int sequence, int mark) { slots_.copy(sequence, options_.sequences + mark); }

void Runner::go_back(int sequence, int mark, int64_t length) {
  slots_.copy(options_.sequences + mark, sequence);
  cache_.truncate(sequence, length);
}

void Runner::check(const Piece& piece) const {
  if (model_.reads_hidden && std::ssize(piece.hidden) != std::ssize(piece.tokens) * model_.width)
    throw_error(Exit::failed, "{} numbers of hidden states for {} tokens", piece.hidden.size(), piece.tokens.size());
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

std::vector<Drawn> Runner::evaluate_and_draw_along(int sequence, const Draw& how, size_t guessed) {
  const std::span<const int32_t> text = how.history, guess = text.last(guessed);
  const Piece piece{sequence, text.subspan(static_cast<size_t>(length(sequence))), false,
                    static_cast<int64_t>(guessed) + 1};
  if (piece.tokens.size() <= guessed) throw_error(Exit::failed, "a draw is from a row of logits");
  std::vector<Draw> draws;
  for (size_t i = 0; i <= guessed; ++i)
    draws.push_back({how.sampler, text.first(text.size() - guessed + i), how.log_probability, i > 0});
  Sampler& sampler = *how.sampler;
  if (draws_on_device()) {
    const Random before = sampler.random();
    const DrawInputs inputs(draws, model_.vocabulary);
    if (inputs.fit()) {
      read({&piece, 1}, draws, inputs);
      size_t taken = 1;
      while (taken <= guessed && drawn_[taken - 1].token == guess[taken - 1] && drawn_[taken].token >= 0) ++taken;
      drawn_.resize(taken);
      sampler.restart(before);
      for (size_t i = 0; i < taken; ++i) sampler.next_number();
      return drawn_;
    }
  }
  read({&piece, 1}, {}, {});
  const auto row = static_cast<size_t>(model_.vocabulary);
  std::vector<Drawn> drawn;
  for (size_t i = 0; i <= guessed && (i == 0 || drawn.back().token == guess[i - 1]); ++i) {
    const Random before = sampler.random();
    try {
      drawn.push_back(draw_from(std::span<const float>(logits_).subspan(i * row, row), draws[i]));
    } catch (const Error&) {  // of a later token, it comes again where that token is the first
      if (i == 0) throw;
      sampler.restart(before);
      break;
    }
  }
  return drawn;
}

// With draws it ends in drawn_, else in logits_.
void Runner::read(std::span<const Piece> pieces, std::span<const Draw> draws, const DrawInputs& inputs) {
  for (const Piece& piece : pieces) check(piece);
  logits_.clear(), hidden_.clear();
  drawn_.clear();
  Batch batch;
  std::vector<float> hidden;  // that the tokens of `batch` go on from
  std::vector<int> members;   // sequence of each row of pages
  const auto flush = [&] {
    if (batch.tokens.empty()) return;
    int64_t most = 1;
    for (const int member : members) most = std::max(most, cache_.pages_of(member));
    Capacity capacity =
        capacity_for(static_cast<int64_t>(batch.tokens.size()), static_cast<int64_t>(batch.wanted.size()), most);
    const int64_t per_sequence = capacity.pages;
    batch.pages_per_sequence = static_cast<int32_t>(per_sequence);
    batch.pages.resize(members.size() * static_cast<size_t>(per_sequence));
    batch.slots.assign(members.begin(), members.end());
    for (size_t i = 0; i < members.size(); ++i)
      cache_.write_pages(
          members[i],
          std::span(batch.pages).subspan(i * static_cast<size_t>(per_sequence), static_cast<size_t>(per_sequence)));
    const std::span<const Draw> mine = draws.empty() ? draws : draws.subspan(drawn_.size(), batch.wanted.size());
    if (!mine.empty()) capacity.slots = inputs.slots(), batch.more = inputs.rows(drawn_.size(), mine.size());
    if (!hidden.empty()) batch.more.push_back({"hidden", std::as_bytes(std::span(hidden))});
    step(batch, capacity, mine);
    batch = {}, members.clear(), hidden.clear();
  };
  // A long part of a piece has a step of its own, and what shares one is whole and short: how a piece is computed
  // depends on itself alone, even where that of many tokens gives other bits.
  const int64_t same_bits = options_.device.same_bits_to();
  const auto sharing = static_cast<size_t>(std::min(same_bits, most_tokens));
  for (const Piece& piece : pieces) {
    for (size_t done = 0; done < piece.tokens.size();) {
      const size_t left = piece.tokens.size() - done, together = batch.tokens.size() + left;
      const bool alone = static_cast<int64_t>(left) > same_bits;
      const bool splits = same_bits >= most_tokens;  // no matter where a piece is cut
      if (alone || (splits ? batch.tokens.size() == sharing : together > sharing)) flush();
      const size_t n = std::min(left, (alone ? static_cast<size_t>(most_tokens) : sharing) - batch.tokens.size());
      int64_t position = cache_.length(piece.sequence);
      cache_.extend(piece.sequence, static_cast<int64_t>(n));
      members.push_back(piece.sequence);
      for (size_t i = 0; i < n; ++i, ++done) {
        if (piece.all_logits || static_cast<int64_t>(piece.tokens.size() - done) <= piece.rows)
          batch.wanted.push_back(static_cast<int32_t>(batch.tokens.size()));
        batch.tokens.push_back(piece.tokens[done]);
        if (!piece.hidden.empty()) {
          const auto width = static_cast<size_t>(model_.width);
          const auto row = piece.hidden.subspan(done * width, width);
          hidden.insert(hidden.end(), row.begin(), row.end());
        }
        batch.positions.push_back(static_cast<int32_t>(position++));
        batch.sequences.push_back(static_cast<int32_t>(members.size() - 1));
      }
      if (alone) flush();
    }
  }
  flush();
}

void Runner::step(const Batch& batch, const Capacity& capacity, std::span<const Draw> draws) {
  Program& p = program(capacity);
  if (times_) *times_ = p.time_kernels(batch);
  if (observer_)
    p.run_observed(batch, *pool_, observer_);
  else
    p.run(batch, *pool_);
  if (options_.hidden) {
    const size_t index = draws.empty() ? 1 : 3;
    if (draws.empty())
      p.bring({0, 1});
    else
      p.bring({1, 2, 3});
    const View rows = p.output(index);
    hidden_.insert(hidden_.end(), rows.as<float>(), rows.as<float>() + rows.shape.count());
  }
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
    if (token < 0 &&
        !draws[i].on_condition) {  // the same logits say the same to the sampler, which knows the words for it
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
