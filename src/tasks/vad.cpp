// SPDX-License-Identifier: Apache-2.0
#include "tasks/vad.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace consonant {

namespace {

constexpr double rate = AudioSource::rate;
constexpr int64_t windows_a_step = 64;

// Reads the next windows, the last of a recording filled up with zeros, and returns the samples that came.
int64_t read_windows(AudioSource& source, int64_t window, std::vector<float>& samples) {
  samples.resize(static_cast<size_t>(windows_a_step * window));
  const int64_t got = source.read(samples);
  if (got < 0 || got > static_cast<int64_t>(samples.size()))
    throw_error(Exit::failed, "{}: {} samples were read where {} were wanted", source.name(), got, samples.size());
  const int64_t whole = (got + window - 1) / window * window;
  std::fill(samples.begin() + got, samples.begin() + whole, 0.0f);
  samples.resize(static_cast<size_t>(whole));
  return got;
}

}  // namespace

SpeechSegmenter::SpeechSegmenter(const VadOptions& o, int64_t window)
    : threshold_(o.threshold),
      neg_threshold_(o.neg_threshold >= 0 ? o.neg_threshold : std::max(o.threshold - 0.15, 0.01)),
      min_speech_(o.min_speech * rate),
      min_silence_(o.min_silence * rate),
      pad_(o.pad * rate),
      max_speech_(o.max_speech * rate - double(window) - 2 * o.pad * rate),
      min_silence_at_max_(o.min_silence_at_max * rate),
      window_(window) {}

int64_t SpeechSegmenter::padded_start(int64_t start) const {
  return static_cast<int64_t>(std::max(0.0, double(start) - pad_));
}

// The stretch that we are in ends. Neighbours that both have no room for their pads share what is between them.
void SpeechSegmenter::close(int64_t end) {
  SpeechPart part{padded_start(*start_), end};
  if (waiting_) {
    const int64_t silence = *start_ - waiting_->end;
    if (double(silence) < 2 * pad_) {
      waiting_->end += silence / 2;
      part.start = std::max<int64_t>(0, *start_ - silence / 2);
    } else {
      waiting_->end = static_cast<int64_t>(double(waiting_->end) + pad_);
    }
    done_.push_back(*waiting_);
  }
  waiting_ = part;
}

// The next stretch starts at sample `next` or later.
void SpeechSegmenter::settle(int64_t next) {
  if (!waiting_ || double(next - waiting_->end) < 2 * pad_) return;
  waiting_->end = static_cast<int64_t>(double(waiting_->end) + pad_);
  done_.push_back(*waiting_);
  waiting_.reset();
}

void SpeechSegmenter::add(float probability) {
  const double p = probability;
  const int64_t at = at_;
  settle(start_.value_or(at));
  at_ += window_;
  if (p >= threshold_ && quiet_) {
    if (double(at - *quiet_) > min_silence_at_max_) silences_.push_back({*quiet_, at});
    quiet_.reset();
  }
  if (!start_) {
    if (p >= threshold_) start_ = at;
    return;
  }
  if (double(at - *start_) > max_speech_) {
    const auto longest = std::max_element(silences_.begin(), silences_.end(), [](const auto& a, const auto& b) {
      return a.end - a.start < b.end - b.start;
    });
    const bool in_silence = longest != silences_.end();
    close(in_silence ? longest->start : at);
    start_ = in_silence ? std::optional(longest->end) : std::nullopt;
    silences_.clear();
    quiet_.reset();
    if (!in_silence) return;
  }
  if (p >= neg_threshold_) return;
  if (!quiet_) quiet_ = at;
  if (double(at - *quiet_) < min_silence_) return;
  if (double(*quiet_ - *start_) > min_speech_) close(*quiet_);
  start_.reset();
  quiet_.reset();
  silences_.clear();
}

void SpeechSegmenter::finish(int64_t samples) {
  if (start_ && double(samples - *start_) > min_speech_) close(samples);
  if (waiting_) {
    waiting_->end = static_cast<int64_t>(std::min(double(samples), double(waiting_->end) + pad_));
    done_.push_back(*waiting_);
  }
  start_.reset(), waiting_.reset();
}

int64_t SpeechSegmenter::earliest() const { return waiting_ ? waiting_->start : padded_start(start_.value_or(at_)); }

std::vector<SpeechPart> find_speech(VoiceModel& model, AudioSource& source, const VadOptions& options) {
  model.reset();
  SpeechSegmenter segmenter(options, model.window_samples());
  std::vector<SpeechPart> parts;
  std::vector<float> samples;
  int64_t all = 0;
  do {
    all += read_windows(source, model.window_samples(), samples);
    for (const float p : model.listen(samples)) segmenter.add(p);
    const auto known = segmenter.take();
    parts.insert(parts.end(), known.begin(), known.end());
  } while (!samples.empty());
  segmenter.finish(all);
  const auto rest = segmenter.take();
  parts.insert(parts.end(), rest.begin(), rest.end());
  return parts;
}

SpeechOnlySource::SpeechOnlySource(AudioSource& source, VoiceModel& model, const VadOptions& options)
    : source_(source), model_(model), segmenter_(options, model.window_samples()), pad_(options.pad) {
  if (options.max_speech == std::numeric_limits<double>::infinity())
    throw_error(Exit::failed, "speech of any length can't be held until it ends");
  model.reset();
}

// Reads on, and lets go of what is no speech.
void SpeechOnlySource::advance() {
  const int64_t known = parts_.empty() ? segmenter_.earliest() : parts_.front().start;
  const int64_t drop = std::min(std::max(known, first_), taken_) - first_;
  held_.erase(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(drop));
  first_ += drop;

  std::vector<float> samples;
  const int64_t got = read_windows(source_, model_.window_samples(), samples);
  held_.insert(held_.end(), samples.begin(), samples.begin() + got);
  taken_ += got;
  for (const float p : model_.listen(samples)) segmenter_.add(p);
  ended_ = got < windows_a_step * model_.window_samples();
  if (ended_) segmenter_.finish(taken_);
  for (const SpeechPart& part : segmenter_.take())
    if (part.start < part.end) parts_.push_back(part);
}

int64_t SpeechOnlySource::read(std::span<float> to) {
  size_t filled = 0;
  while (filled < to.size()) {
    if (parts_.empty()) {
      if (ended_) break;
      advance();
      continue;
    }
    SpeechPart& part = parts_.front();
    if (pieces_.empty() || pieces_.back().there + (given_ - pieces_.back().here) != part.start)
      pieces_.push_back({given_, part.start});
    const auto count = std::min(part.end - part.start, static_cast<int64_t>(to.size() - filled));
    std::copy_n(held_.begin() + (part.start - first_), count, to.begin() + static_cast<std::ptrdiff_t>(filled));
    filled += static_cast<size_t>(count);
    part.start += count, given_ += count;
    if (part.start == part.end) parts_.pop_front();
  }
  return static_cast<int64_t>(filled);
}

// The piece that holds a time; of a cut, the piece before it for an end.
const SpeechOnlySource::Piece* SpeechOnlySource::piece_at(double seconds, bool end) const {
  const auto after = std::partition_point(pieces_.begin(), pieces_.end(), [&](const Piece& p) {
    const double start = double(p.here) / rate;
    return end ? start < seconds : start <= seconds;
  });
  if (pieces_.empty()) return nullptr;
  return after == pieces_.begin() ? &pieces_.front() : &*(after - 1);
}

double SpeechOnlySource::start_time(double seconds) const {
  const Piece* piece = piece_at(seconds, false);
  return piece == nullptr ? seconds : seconds + double(piece->there - piece->here) / rate;
}

double SpeechOnlySource::end_time(double seconds) const {
  const Piece* piece = piece_at(seconds, true);
  return piece == nullptr ? seconds : seconds + double(piece->there - piece->here) / rate;
}

std::vector<double> SpeechOnlySource::cuts(double from, double to) const {
  std::vector<double> cuts;
  for (const Piece& p : pieces_) {
    const double at = double(p.here) / rate;
    if (at > from && at < to) cuts.push_back(at);
  }
  return cuts;
}

std::pair<double, double> SpeechOnlySource::cuts_around(double from, double to) const {
  std::pair<double, double> around{0, std::numeric_limits<double>::infinity()};
  for (const Piece& p : pieces_) {
    const double at = double(p.here) / rate;
    if (at <= from) around.first = at;
    if (at >= to) around.second = std::min(around.second, at);
  }
  return around;
}

}  // namespace consonant
