// SPDX-License-Identifier: Apache-2.0
#include "decode/codebooks.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "base/error.hpp"

namespace consonant {

namespace {

constexpr int64_t least_frames = 2;    // before the end token may be drawn
constexpr int64_t watched_frames = 8;  // before a limit, in which the end token is watched

// A step's token may be the end, so that there is one more of them than there may be frames.
StopLimits in_steps(StopLimits limits) {
  for (int64_t* limit : {&limits.max_tokens, &limits.context, &limits.input_bound})
    if (*limit >= 0) ++*limit;
  return limits;
}

EndStanding standing(std::span<const float> logits, int32_t end) {
  const float own = logits[static_cast<size_t>(end)], top = *std::max_element(logits.begin(), logits.end());
  int64_t above = 0;
  double sum = 0;
  for (const float logit : logits) {
    above += logit > own;
    sum += std::exp(double{logit} - top);
  }
  return {above + 1, std::exp(double{own} - top) / sum};
}

// An utterance under way.
class Run {
 public:
  Run(FrameModel& model, const Utterance& what, size_t index, Spoken& out)
      : model_(model),
        what_(what),
        index_(index),
        out_(out),
        first_(what.first),
        others_(what.others),
        rules_(in_steps(what.limits), what.prompt.size()),
        next_(what.prompt),
        sequence_(model.open(what.voice)) {}
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;
  ~Run() { model_.close(sequence_); }

  bool over() const { return over_; }

  // Whether a step may be made.
  bool begin() {
    if (const auto stop = rules_.before_step(steps_)) finish(*stop);
    return !over_;
  }

  FramePiece piece() {
    started_ = Clock::now();
    FrameDraw draw{&first_, history_, &others_};
    draw.may_end = steps_ >= least_frames;
    if (steps_ < forced_frames()) draw.forced = what_.forced.subspan(at(steps_), at(1));
    draw.all_logits = what_.record;
    draw.logits = what_.record || frames_left() <= watched_frames;
    return {sequence_, &next_, draw};
  }

  void take(Frame frame, int32_t text_pad, const OnFrame& on_frame) {
    (steps_ == 0 ? out_.prompt_s : out_.frames_s) += seconds_since(started_);
    const int32_t code = frame.codes[0];
    ++steps_;
    const bool replayed = !what_.forced.empty(), last = replayed ? steps_ > forced_frames() : rules_.is_end(code);
    keep(frame, last);
    if (last) return finish(Stop::end_token);
    if (const auto stop = rules_.after(code, steps_, false); stop && !replayed) return finish(*stop);
    out_.codes.insert(out_.codes.end(), frame.codes.begin(), frame.codes.end());
    ++out_.frames;
    history_.push_back(code);
    if (on_frame && !on_frame(index_, frame.codes)) return finish(Stop::cancelled);
    const auto step = static_cast<size_t>(steps_ - 1);
    next_.text = {step < what_.trailing.size() ? what_.trailing[step] : text_pad};
    next_.codes = std::move(frame.codes);
    next_.voice = {-1};
  }

 private:
  size_t at(int64_t frame) const { return static_cast<size_t>(frame * what_.prompt.groups); }
  int64_t forced_frames() const { return static_cast<int64_t>(what_.forced.size()) / what_.prompt.groups; }

  int64_t frames_left() const {
    const StopLimits& l = what_.limits;
    int64_t least = INT64_MAX;
    for (const int64_t limit : {l.max_tokens, l.input_bound}) least = limit >= 0 ? std::min(least, limit) : least;
    if (l.context >= 0) least = std::min(least, l.context - what_.prompt.size());
    return least - out_.frames;
  }

  void keep(const Frame& frame, bool last) {
    if (!frame.logits.empty() && !what_.limits.end_tokens.empty()) {
      out_.end.push_back(standing(frame.logits, what_.limits.end_tokens[0]));
      if (std::ssize(out_.end) > watched_frames) out_.end.erase(out_.end.begin());
    }
    if (!what_.record) return;
    out_.logits.insert(out_.logits.end(), frame.logits.begin(), frame.logits.end());
    out_.hidden.insert(out_.hidden.end(), frame.hidden.begin(), frame.hidden.end());
    if (!last) out_.code_logits.insert(out_.code_logits.end(), frame.code_logits.begin(), frame.code_logits.end());
  }

  void finish(Stop stop) {
    out_.stop = stop;
    over_ = true;
  }

  FrameModel& model_;
  const Utterance& what_;
  size_t index_;
  Spoken& out_;
  Sampler first_, others_;
  StopRules rules_;
  FrameRows next_;
  int sequence_;
  std::vector<int32_t> history_;
  int64_t steps_ = 0;
  bool over_ = false;
  Clock::time_point started_;
};

void check(const Utterance& what, size_t index) {
  const int64_t groups = what.prompt.groups, rows = what.prompt.size();
  if (groups < 1 || std::ssize(what.prompt.codes) != rows * groups || std::ssize(what.prompt.voice) != rows ||
      std::ssize(what.forced) % groups != 0)
    throw_error(Exit::failed, "utterance {}: {} text ids, {} codes, {} places of the voice, {} forced codes, {} groups",
                index, rows, what.prompt.codes.size(), what.prompt.voice.size(), what.forced.size(), groups);
}

}  // namespace

std::vector<Spoken> speak_frames(FrameModel& model, std::span<const Utterance> utterances, int32_t text_pad,
                                 const OnFrame& on_frame) {
  std::vector<Spoken> spoken(utterances.size());
  std::vector<std::unique_ptr<Run>> runs;
  for (size_t i = 0; i < utterances.size(); ++i) check(utterances[i], i);
  size_t next = 0;
  for (;;) {
    std::erase_if(runs, [](const auto& run) { return !run->begin(); });
    while (next < utterances.size() && std::ssize(runs) < model.sequences()) {
      runs.push_back(std::make_unique<Run>(model, utterances[next], next, spoken[next]));
      ++next;
      if (!runs.back()->begin()) runs.pop_back();
    }
    if (runs.empty()) return spoken;
    std::vector<FramePiece> pieces;
    for (const auto& run : runs) pieces.push_back(run->piece());
    std::vector<Frame> frames = model.frames(pieces);
    for (size_t i = 0; i < runs.size(); ++i) runs[i]->take(std::move(frames[i]), text_pad, on_frame);
    std::erase_if(runs, [](const auto& run) { return run->over(); });
  }
}

}  // namespace consonant
