// SPDX-License-Identifier: Apache-2.0
// Where what isn't speech was left out: no segment reaches over it, and times become the recording's.
#include <algorithm>
#include <utility>

#include "tasks/speech_run.hpp"

namespace consonant {

namespace {

constexpr double rate = AudioSource::rate;

}  // namespace

bool SpeechRun::spans_cut(const TimedSegment& segment) const {
  return speech_ && !speech_->cuts(segment.start, segment.end).empty();
}

// A segment becomes one for each side of a cut that has words of it. A word's start may be early, in the silence before
// it; what starts in the silence before a cut is therefore heard after it.
std::vector<SpeechRun::Part> SpeechRun::split_at_cuts(std::vector<Part> parts, std::span<const Word> words) const {
  std::vector<Part> result;
  size_t word = 0;
  for (Part& p : parts) {
    const std::vector<double> cuts = speech_->cuts(p.segment.start, p.segment.end);
    size_t end = word;
    while (end < words.size() && words[end].first < p.last) ++end;
    if (cuts.empty()) {
      result.push_back(std::move(p));
      word = end;
      continue;
    }
    std::vector<int32_t> tokens = std::move(p.segment.tokens);  // text and timestamps, given out up to `at`
    size_t at = 0, side = 0;
    const auto add = [&](size_t last_word, bool all) {
      Part part = p;
      part.segment.text.clear();
      part.first = word < end ? words[word].first : p.first;
      part.last = last_word > word ? words[last_word - 1].last : p.last;
      if (side > 0) part.low = cuts[side - 1];
      if (side < cuts.size()) part.high = cuts[side];
      const bool first = at == 0;
      const double start = first ? p.segment.start : words[word].timed.start;
      const double until = all ? p.segment.end : words[last_word - 1].timed.end;
      part.segment.start = std::clamp(start, part.low, part.high);
      part.segment.end = std::clamp(until, part.segment.start, part.high);
      size_t left = part.last - part.first;
      while (at < tokens.size() && (all || left > 0)) {
        if (left > 0 && tokens[at] < parts_.vocabulary.end) --left;
        part.segment.tokens.push_back(tokens[at++]);
      }
      std::vector<int32_t> plain;
      for (const int32_t id : part.segment.tokens)
        if (id < parts_.vocabulary.end) plain.push_back(id);
      part.segment.text = text_of(plain);
      result.push_back(std::move(part));
      word = last_word;
    };
    const auto side_of = [&](const Word& w) {
      const double start = w.timed.start + speech_->pad();
      return static_cast<size_t>(std::upper_bound(cuts.begin(), cuts.end(), start) - cuts.begin());
    };
    if (word < end) side = side_of(words[word]);
    for (size_t i = word; i < end; ++i) {
      const size_t next = std::max(side, side_of(words[i]));
      if (next == side) continue;
      add(i, false);
      side = next;
    }
    add(end, true);
  }
  return result;
}

// Seconds of the recording that are done when sample `at` of the windows is reached.
double SpeechRun::recording_time(int64_t at) const {
  if (!speech_) return double(std::min(at, sound_.read())) / rate;
  if (sound_.ended() && at >= sound_.read()) return double(speech_->taken()) / rate;
  return speech_->end_time(double(std::min(at, sound_.read())) / rate);
}

TimedSegment SpeechRun::in_recording(TimedSegment segment) const {
  if (!speech_) return segment;
  const auto move = [this](double& start, double& end) {
    start = speech_->start_time(start);
    end = std::max(start, speech_->end_time(end));
  };
  move(segment.start, segment.end);
  for (TimedWord& w : segment.words) move(w.start, w.end);
  return segment;
}

}  // namespace consonant
