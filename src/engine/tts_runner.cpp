// SPDX-License-Identifier: Apache-2.0
#include "engine/tts_runner.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/checked.hpp"
#include "engine/buckets.hpp"
#include "ops/sample/sample.hpp"

namespace consonant {

namespace {

// Far above any logit, and far below what a float holds.
constexpr float certain = 1e30f;

void add_bias(std::vector<Adjustment>& adjustments, int32_t code, float bias) {
  const auto at =
      std::find_if(adjustments.begin(), adjustments.end(), [&](const Adjustment& a) { return a.token == code; });
  if (at == adjustments.end())
    adjustments.push_back({code, 0, bias});
  else
    at->bias += bias;
}

// What changes the logits of codebook 0 before a draw.
std::vector<Adjustment> adjustments_of(const FrameDraw& draw, const TtsVocabulary& v) {
  if (!draw.forced.empty()) return {{draw.forced[0], 0, certain}};
  auto all = draw.first->adjustments(draw.history, static_cast<size_t>(v.codes));
  if (!draw.may_end) add_bias(all, v.end, -INFINITY);
  return all;
}

// The columns of a step's draws, a codebook each. A forced code is a greedy choice that a bias has decided: it takes
// the way that a drawn one takes.
std::vector<DrawColumns> draw_columns(std::span<const FramePiece> pieces, const TtsVocabulary& v) {
  std::vector<std::vector<Adjustment>> firsts;
  int64_t slots = DrawInputs::least_slots;
  for (const FramePiece& piece : pieces) {
    firsts.push_back(adjustments_of(piece.draw, v));
    while (slots < std::ssize(firsts.back())) slots *= 8;
  }
  if (slots > DrawInputs::most_slots) throw_error(Exit::failed, "{} codes of a history", slots);
  std::vector<DrawColumns> columns(1, DrawColumns(slots));
  columns.resize(static_cast<size_t>(v.groups), DrawColumns(1));
  for (size_t i = 0; i < pieces.size(); ++i) {
    const FrameDraw& draw = pieces[i].draw;
    const bool forced = !draw.forced.empty();
    for (size_t g = 0; g < columns.size(); ++g) {
      Sampler& sampler = g == 0 ? *draw.first : *draw.others;
      std::vector<Adjustment> changed;
      if (g == 0) changed = std::move(firsts[i]);
      if (g > 0 && forced) changed = {{draw.forced[g], 0, certain}};
      if (forced)
        columns[g].add({}, 0, std::move(changed));
      else
        columns[g].add(sampler.options(), sampler.next_number(), std::move(changed));
    }
  }
  return columns;
}

template <class T>
std::span<const std::byte> bytes_of(const std::vector<T>& numbers) {
  return std::as_bytes(std::span(numbers));
}

std::vector<float> row_of(const View& view, size_t row) {
  const float* first = view.row<float>(static_cast<int64_t>(row));
  return {first, first + view.last()};
}

}  // namespace

struct TtsRunner::Numbers {
  std::vector<std::vector<int32_t>> codes, places;
  std::vector<int32_t> voice, frame;
  std::vector<DrawColumns> columns;
};

TtsRunner::TtsRunner(const Qwen3Tts& model, const std::vector<WeightSource>& weights, const RunnerOptions& options)
    : model_(model),
      options_(options),
      pool_(std::make_unique<ThreadPool>(options.threads)),
      weights_(weights, options.device, *pool_, options.on_weights),
      cache_(TtsPlanner::cache_of(model, options), options.device.accelerator.get()),
      frame_cache_(TtsPlanner::frames_of(model, options), options.device.accelerator.get()),
      voices_(static_cast<size_t>(options.sequences * model.width)) {
  for (int i = 0; i < options.sequences; ++i) {
    const int frame = frame_cache_.open();
    frame_cache_.extend(frame, model.vocabulary().groups);
    frame_pages_.push_back(-1);
    frame_cache_.write_pages(frame, std::span(frame_pages_).last(1));
  }
  // What the device can't run at the largest sizes that a run may reach, it refuses before anything begins.
  if (Accelerator* accelerator = options_.device.accelerator.get())
    arena_ =
        std::make_shared<Buffer>(planner().largest_arena([&](const StateAttr& s) { return view(s); }), accelerator);
}

Runner::Needs TtsRunner::needs(const Qwen3Tts& model, const std::vector<WeightSource>& weights,
                               const RunnerOptions& options) {
  const CacheLayout cache = TtsPlanner::cache_of(model, options), frames = TtsPlanner::frames_of(model, options);
  const WeightStore planned = WeightStore::planned(weights, options.device.kind);
  const TtsPlanner planner{model, options, cache, frames, planned};
  return {planned.bytes(), checked_add(cache.bytes(), frames.bytes()),
          planner.largest_arena([&](const StateAttr& s) { return planner.unplaced(s); })};
}

Plan TtsRunner::plan_unloaded(const Qwen3Tts& model, const std::vector<WeightSource>& weights,
                              const RunnerOptions& options) {
  const CacheLayout cache = TtsPlanner::cache_of(model, options), frames = TtsPlanner::frames_of(model, options);
  const WeightStore planned = WeightStore::planned(weights, options.device.kind);
  const TtsPlanner planner{model, options, cache, frames, planned};
  const auto unplaced = [&](const StateAttr& s) { return planner.unplaced(s); };
  if (options.device.accelerator)
    for (const TtsStep& step : planner.largest()) planner.plan(step, unplaced, {});
  return planner.plan({1, 1, cache.pages_per_sequence(), DrawInputs::least_slots}, unplaced, {});
}

View TtsRunner::view(const StateAttr& state) const {
  return (state.cache == CacheRole::self ? cache_ : frame_cache_).view(state);
}

// As Runner::capacity_for has it.
int64_t TtsRunner::pages_for(int64_t pages) const {
  const int64_t all = cache_.pages_per_sequence();
  int64_t held = 8;
  while (held < pages) held *= 2;
  return options_.device.accelerator ? std::min(held, all) : all;
}

Program& TtsRunner::program(const TtsStep& step) {
  auto& program = programs_[step];
  if (!program) {
    const auto place = [&](const StateAttr& s) { return view(s); };
    program = std::make_unique<Program>(planner().plan(step, place, watched_), arena_);
  }
  return *program;
}

int TtsRunner::open(std::span<const float> voice) {
  if (!voice.empty() && std::ssize(voice) != model_.width)
    bad_input("a voice of {} numbers: this model's have {}", voice.size(), model_.width);
  const int sequence = cache_.open();
  if (!voice.empty()) std::copy(voice.begin(), voice.end(), voices_.begin() + sequence * model_.width);
  return sequence;
}

void TtsRunner::check(const FramePiece& piece) const {
  const TtsVocabulary& v = model_.vocabulary();
  const FrameRows& rows = *piece.rows;
  if (rows.groups != v.groups || rows.size() == 0 || std::ssize(rows.codes) != rows.size() * v.groups ||
      std::ssize(rows.voice) != rows.size())
    throw_error(Exit::failed, "{} positions with {} codes of {} codebooks", rows.size(), rows.codes.size(), v.groups);
  for (const int32_t id : rows.text)
    if (id < 0 || id >= v.text) bad_input("text token {}: the table has {} rows", id, v.text);
  const auto check_code = [&](int64_t group, int32_t code, int32_t least) {
    const int64_t codes = group == 0 ? v.codes : v.book;
    if (code < least || code >= codes) bad_input("code {} of codebook {}: there are {}", code, group, codes);
  };
  for (size_t i = 0; i < rows.codes.size(); ++i) check_code(static_cast<int64_t>(i) % v.groups, rows.codes[i], -1);
  const auto forced = piece.draw.forced;
  if (!forced.empty() && std::ssize(forced) != v.groups)
    throw_error(Exit::failed, "{} forced codes of a frame", forced.size());
  for (size_t g = 0; g < forced.size(); ++g) check_code(static_cast<int64_t>(g), forced[g], 0);
  const int64_t end = cache_.length(piece.sequence) + rows.size();
  if (end > context()) bad_input("{} positions don't fit the context of {}", end, context());
}

const Program& TtsRunner::step(std::span<const FramePiece> pieces, int64_t first, int64_t last, int64_t wanted,
                               bool draws) {
  const TtsVocabulary& v = model_.vocabulary();
  Batch batch;
  Numbers numbers;
  numbers.codes.resize(static_cast<size_t>(v.groups));
  bool voices = false;
  int64_t most = 1;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const FrameRows& rows = *pieces[i].rows;
    int64_t position = cache_.length(pieces[i].sequence);
    cache_.extend(pieces[i].sequence, last - first);
    most = std::max(most, cache_.pages_of(pieces[i].sequence));
    for (int64_t r = first; r < last; ++r) {
      const auto at = static_cast<size_t>(r);
      if (last - r <= wanted) batch.wanted.push_back(static_cast<int32_t>(batch.tokens.size()));
      batch.tokens.push_back(rows.text[at]);
      batch.positions.push_back(static_cast<int32_t>(position++));
      batch.sequences.push_back(static_cast<int32_t>(i));
      for (size_t g = 0; g < numbers.codes.size(); ++g)
        numbers.codes[g].push_back(rows.codes[at * numbers.codes.size() + g]);
      voices = voices || rows.voice[at] >= 0;
      numbers.voice.push_back(rows.voice[at] < 0 ? -1 : pieces[i].sequence);
    }
  }
  TtsStep size{bucket(std::ssize(batch.tokens)), bucket(std::ssize(batch.wanted)), pages_for(most), 0, voices};
  batch.pages_per_sequence = static_cast<int32_t>(size.pages);
  batch.pages.resize(pieces.size() * static_cast<size_t>(size.pages));
  for (size_t i = 0; i < pieces.size(); ++i)
    cache_.write_pages(
        pieces[i].sequence,
        std::span(batch.pages).subspan(i * static_cast<size_t>(size.pages), static_cast<size_t>(size.pages)));
  for (int64_t g = 0; g < v.groups; ++g)
    batch.more.push_back({"code" + TtsPlanner::of_group(g), bytes_of(numbers.codes[static_cast<size_t>(g)])});
  batch.more.push_back({"voice", bytes_of(numbers.voice)});
  batch.more.push_back({"voices", bytes_of(voices_)});
  if (draws) {
    numbers.columns = draw_columns(pieces, v);
    size.slots = numbers.columns[0].slots();
    numbers.frame.resize(pieces.size());
    std::iota(numbers.frame.begin(), numbers.frame.end(), 0);
    for (int64_t g = 0; g < v.groups; ++g) numbers.places.emplace_back(pieces.size(), static_cast<int32_t>(g));
    for (int64_t g = 0; g < v.groups; ++g) {
      const auto at = static_cast<size_t>(g);
      batch.more.push_back({"place" + TtsPlanner::of_group(g), bytes_of(numbers.places[at])});
      for (NamedNumbers& column : numbers.columns[at].rows(0, pieces.size(), TtsPlanner::of_group(g)))
        batch.more.push_back(std::move(column));
    }
    batch.more.push_back({"frame", bytes_of(numbers.frame)});
    batch.more.push_back({"frame_pages", bytes_of(frame_pages_)});
  }
  Program& p = program(size);
  if (times_) *times_ = p.time_kernels(batch);
  if (observer_)
    p.run_observed(batch, *pool_, observer_);
  else
    p.run(batch, *pool_);
  if (!watched_.empty()) taps_.keep(p);
  return p;
}

void TtsRunner::take_frames(const Program& program, std::span<const FramePiece> pieces,
                            std::vector<Frame>& frames) const {
  const TtsVocabulary& v = model_.vocabulary();
  const TtsOutputs at{v.groups};
  std::vector<size_t> wanted;
  bool logits = false, all = false;
  for (const FramePiece& piece : pieces)
    logits = logits || piece.draw.logits || piece.draw.all_logits, all = all || piece.draw.all_logits;
  for (int64_t g = 0; g < v.groups; ++g) wanted.push_back(at.code(g));
  if (logits) wanted.push_back(at.logits);
  if (all) wanted.push_back(at.hidden);
  for (int64_t g = 1; all && g < v.groups; ++g) wanted.push_back(at.code_logits(g));
  program.bring(wanted);
  for (size_t i = 0; i < pieces.size(); ++i) {
    const FrameDraw& draw = pieces[i].draw;
    Frame& frame = frames.emplace_back();
    for (int64_t g = 0; g < v.groups; ++g) {
      const int32_t code = program.output(at.code(g)).as<int32_t>()[i];
      if (code < 0)
        throw_error(Exit::failed,
                    "sampling codebook {} of a frame: {}: the model's weights or its arithmetic are broken", g,
                    code == all_excluded ? "every code is excluded" : "a logit is NaN or infinite");
      frame.codes.push_back(code);
    }
    if (draw.logits || draw.all_logits) frame.logits = row_of(program.output(at.logits), i);
    if (!draw.all_logits) continue;
    frame.hidden = row_of(program.output(at.hidden), i);
    for (int64_t g = 1; g < v.groups; ++g) {
      const std::vector<float> row = row_of(program.output(at.code_logits(g)), i);
      frame.code_logits.insert(frame.code_logits.end(), row.begin(), row.end());
    }
  }
}

// A prompt has steps of its own, and frames share one: how a position is computed depends on its own sequence alone,
// even where steps of many tokens give other bits.
std::vector<Frame> TtsRunner::frames(std::span<const FramePiece> pieces) {
  for (const FramePiece& piece : pieces) check(piece);
  std::vector<Frame> frames;
  const auto sharing = static_cast<size_t>(std::min(options_.device.same_bits_to(), most_tokens));
  for (size_t first = 0; first < pieces.size();) {
    const int64_t rows = pieces[first].rows->size();
    size_t last = first + 1;
    while (rows == 1 && last < pieces.size() && last - first < sharing && pieces[last].rows->size() == 1) ++last;
    const auto together = pieces.subspan(first, last - first);
    int64_t done = 0;
    for (; rows - done > most_tokens; done += most_tokens) step(together, done, done + most_tokens, 0, false);
    take_frames(step(together, done, rows, 1, true), together, frames);
    first = last;
  }
  return frames;
}

std::vector<float> TtsRunner::states(int sequence, const FrameRows& rows) {
  const FramePiece piece{sequence, &rows, {}};
  check(piece);
  std::vector<float> states;
  for (int64_t done = 0; done < rows.size();) {
    const int64_t n = std::min(rows.size() - done, most_tokens);
    const View out = step({&piece, 1}, done, done + n, n, false).output(TtsOutputs::hidden);
    states.insert(states.end(), out.as<float>(), out.as<float>() + out.shape.count());
    done += n;
  }
  return states;
}

std::vector<Plan::Tap> TtsRunner::all_taps() const {
  const auto place = [&](const StateAttr& s) { return view(s); };
  return planner().plan({1, 1, pages_for(1), DrawInputs::least_slots}, place, {"*"}).taps;
}

void TtsRunner::watch(const std::vector<std::string>& globs) {
  watched_ = globs;
  programs_.clear();
  taps_.take();
}

}  // namespace consonant
