// SPDX-License-Identifier: Apache-2.0
#include "engine/runner.hpp"

#include <algorithm>
#include <cstring>

#include "base/checked.hpp"
#include "tensor/convert.hpp"

namespace consonant {

namespace {

constexpr int64_t most_tokens = 512;  // of a step

// Capacities that programs are built for: the smallest that holds a step is used.
int64_t bucket(int64_t n) {
  for (int64_t capacity : {int64_t{1}, int64_t{8}, int64_t{64}})
    if (n <= capacity) return capacity;
  return most_tokens;
}

Shape state_shape(const KvShape& kv, StateKind kind, int64_t pages) {
  return kind == StateKind::keys ? Shape{pages, kv.heads, kv.key_dim, kv_page}
                                 : Shape{pages, kv.heads, kv_page, kv.value_dim};
}

int64_t context_of(const LanguageModel& model, const RunnerOptions& options) {
  if (options.context < 0) bad_usage("a context of {} tokens", options.context);
  return options.context > 0 ? options.context : model.context;
}

}  // namespace

Runner::Runner(const LanguageModel& model, const std::vector<WeightSource>& weights, const RunnerOptions& options)
    : model_(model),
      options_(options),
      context_(context_of(model, options)),
      pages_per_sequence_(ceil_div(context_, kv_page)),
      pool_(std::make_unique<ThreadPool>(options.threads)),
      weights_(weights, options.device, *pool_) {
  const int64_t pages = checked_mul(pages_per_sequence_, options.sequences);
  if (pages > (int64_t{1} << 30)) bad_usage("a context of {} tokens for {} sequences", context_, options.sequences);
  for (const KvShape& kv : model.kv) {
    keys_.emplace_back(checked_mul(pages, kv_page_bytes(options.kv, kv.heads, kv.key_dim)));
    values_.emplace_back(checked_mul(pages, kv_page_bytes(options.kv, kv.heads, kv.value_dim)));
  }
  for (int64_t page = pages - 1; page >= 0; --page) free_pages_.push_back(static_cast<int32_t>(page));
  sequences_.resize(static_cast<size_t>(options.sequences));
}

int64_t Runner::bytes_needed(const LanguageModel& model, const std::vector<WeightSource>& weights,
                             const RunnerOptions& options) {
  int64_t bytes = WeightStore::bytes_needed(weights, options.device);
  const int64_t pages = checked_mul(ceil_div(context_of(model, options), kv_page), options.sequences);
  for (const KvShape& kv : model.kv)
    bytes = checked_add(bytes, checked_mul(pages, kv_page_bytes(options.kv, kv.heads, kv.key_dim) +
                                                      kv_page_bytes(options.kv, kv.heads, kv.value_dim)));
  return bytes;
}

int64_t Runner::kv_bytes_per_position() const {
  int64_t bytes = 0;
  for (const KvShape& kv : model_.kv)
    bytes += kv_page_bytes(options_.kv, kv.heads, kv.key_dim) + kv_page_bytes(options_.kv, kv.heads, kv.value_dim);
  return bytes / kv_page;
}

int Runner::open() {
  for (size_t i = 0; i < sequences_.size(); ++i)
    if (!sequences_[i].open) {
      sequences_[i].open = true;
      return static_cast<int>(i);
    }
  throw_error(Exit::failed, "all {} sequences are in use", sequences_.size());
}

void Runner::close(int sequence) {
  truncate(sequence, 0);
  sequences_[static_cast<size_t>(sequence)].open = false;
}

int64_t Runner::length(int sequence) const { return sequences_[static_cast<size_t>(sequence)].length; }

void Runner::truncate(int sequence, int64_t length) {
  Sequence& s = sequences_[static_cast<size_t>(sequence)];
  if (length >= s.length) return;
  s.length = length;
  while (static_cast<int64_t>(s.pages.size()) > ceil_div(length, kv_page)) {
    free_pages_.push_back(s.pages.back());
    s.pages.pop_back();
  }
}

void Runner::reserve(Sequence& sequence, int64_t length) {
  while (static_cast<int64_t>(sequence.pages.size()) < ceil_div(length, kv_page)) {
    if (free_pages_.empty()) throw_error(Exit::memory, "no page of the cache is left");
    sequence.pages.push_back(free_pages_.back());
    free_pages_.pop_back();
  }
}

View Runner::state_view(const StateAttr& state) const {
  const auto layer = static_cast<size_t>(state.layer);
  const Buffer& buffer = state.kind == StateKind::keys ? keys_[layer] : values_[layer];
  const Output out =
      dense(options_.kv, state_shape(model_.kv[layer], state.kind, pages_per_sequence_ * options_.sequences));
  return {buffer.data(), out.type, out.shape, out.strides, Layout::plain};
}

std::vector<Tensor> Runner::build(int64_t tokens, int64_t wanted) const {
  Inputs s;
  s.tokens = input("tokens", DType::i32, Shape({tokens}, Axis::token));
  s.pos = input("pos", DType::i32, Shape({tokens}, Axis::token));
  s.seq = input("seq", DType::i32, Shape({tokens}, Axis::token));
  s.pages = input("pages", DType::i32, Shape{options_.sequences, pages_per_sequence_});
  s.wanted = input("wanted", DType::i32, Shape({wanted}, Axis::wanted));
  s.mask = {s.pos, s.seq, s.pages, 0};
  const int64_t pages = pages_per_sequence_ * options_.sequences;
  for (size_t i = 0; i < model_.kv.size(); ++i) {
    const int layer = static_cast<int>(i);
    s.kv.push_back({state(StateKind::keys, layer, options_.kv, state_shape(model_.kv[i], StateKind::keys, pages)),
                    state(StateKind::values, layer, options_.kv, state_shape(model_.kv[i], StateKind::values, pages))});
  }
  std::vector<Tensor> outputs = {model_.logits(s)};
  for (const KvState& kv : s.kv) outputs.insert(outputs.end(), {kv.keys, kv.values});
  return outputs;
}

Program& Runner::program(int64_t tokens, int64_t wanted) {
  auto& program = programs_[{bucket(tokens), bucket(wanted)}];
  if (!program) {
    PlanOptions options;
    options.device = options_.device;
    options.small_activations = options_.small_activations;
    options.taps = watched_;
    options.weights = &weights_;
    options.states = [this](const StateAttr& state) { return state_view(state); };
    program = std::make_unique<Program>(make_plan(build(bucket(tokens), bucket(wanted)), options));
  }
  return *program;
}

const Plan& Runner::plan() { return program(1, 1).plan(); }

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
    batch.pages_per_sequence = static_cast<int32_t>(pages_per_sequence_);
    batch.pages.assign(members.size() * static_cast<size_t>(pages_per_sequence_), -1);
    for (size_t i = 0; i < members.size(); ++i) {
      const auto& pages = sequences_[static_cast<size_t>(members[i])].pages;
      std::copy(pages.begin(), pages.end(), batch.pages.begin() + static_cast<int64_t>(i) * pages_per_sequence_);
    }
    step(batch);
    batch = {}, members.clear();
  };
  for (const Piece& piece : pieces) {
    Sequence& sequence = sequences_[static_cast<size_t>(piece.sequence)];
    for (size_t done = 0; done < piece.tokens.size();) {
      if (static_cast<int64_t>(batch.tokens.size()) == most_tokens) flush();
      const size_t n = std::min(piece.tokens.size() - done, static_cast<size_t>(most_tokens) - batch.tokens.size());
      reserve(sequence, sequence.length + static_cast<int64_t>(n));
      members.push_back(piece.sequence);
      for (size_t i = 0; i < n; ++i, ++done) {
        if (piece.all_logits || done + 1 == piece.tokens.size())
          batch.wanted.push_back(static_cast<int32_t>(batch.tokens.size()));
        batch.tokens.push_back(piece.tokens[done]);
        batch.positions.push_back(static_cast<int32_t>(sequence.length++));
        batch.sequences.push_back(static_cast<int32_t>(members.size() - 1));
      }
    }
  }
  flush();
  return logits_;
}

void Runner::step(const Batch& batch) {
  Program& p = program(static_cast<int64_t>(batch.tokens.size()), static_cast<int64_t>(batch.wanted.size()));
  p.run(batch, *pool_);
  const View out = p.output(0);
  logits_.insert(logits_.end(), out.as<float>(), out.as<float>() + out.shape.count());
  if (!watched_.empty()) keep_taps(p);
}

void Runner::watch(const std::vector<std::string>& globs) {
  watched_ = globs;
  programs_.clear();
  taps_.clear();
}

void Runner::use_threads(int threads) { pool_ = std::make_unique<ThreadPool>(threads); }

void Runner::keep_taps(const Program& program) {
  const auto& planned = program.plan().taps;
  taps_.resize(planned.size());
  for (size_t i = 0; i < planned.size(); ++i) {
    const View view = program.tap(i);
    TapRows& kept = taps_[i];
    if (kept.name.empty()) {
      kept.name = planned[i].name, kept.source = planned[i].source;
      for (int d = 1; d < view.shape.rank(); ++d) kept.sizes.push_back(view.shape[d]);
    }
    const size_t before = kept.rows.size();
    kept.rows.resize(before + static_cast<size_t>(view.shape.count()));
    for (int64_t r = 0; r < view.rows(); ++r)
      decode_row(view.type, view.data + r * row_bytes(view.type, view.last()),
                 kept.rows.data() + before + static_cast<size_t>(r * view.last()), view.last());
  }
}

std::vector<Runner::TapRows> Runner::take_taps() { return std::exchange(taps_, {}); }

}  // namespace consonant
