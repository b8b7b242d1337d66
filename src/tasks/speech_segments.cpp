// SPDX-License-Identifier: Apache-2.0
// What becomes of a window's text: judged, cut into segments, timed.
#include <algorithm>
#include <tuple>
#include <utility>

#include "base/log.hpp"
#include "base/utf8.hpp"
#include "tasks/speech_run.hpp"
#include "tasks/word_times.hpp"

namespace consonant {

namespace {

constexpr double rate = AudioSource::rate;
constexpr int64_t step = 320;  // samples of a timestamp's step
constexpr double step_s = 0.02;
constexpr int64_t slow = 100;          // steps that a window moves on at least, every other time
constexpr int64_t long_silence = 150;  // frames of quiet that a first word doesn't reach into
constexpr int64_t long_tail = 100;     // frames of quiet that a last one doesn't
constexpr int64_t left_out = 100;      // loud frames after a text that it should have told of
constexpr double most_letters = 15;    // a second
constexpr int64_t few_letters = 24;

// A segment takes as long as its words. Where that is no time at all, since the alignment heard them on the other side
// of what was left out, they share the time that the text's timestamps give it.
void time_by_words(TimedSegment& segment, double low, double high) {
  auto& words = segment.words;
  if (words.back().end - words.front().start < step_s) {
    const double start = std::clamp(std::min(segment.start, high - step_s), low, high);
    const double end = std::clamp(std::max(segment.end, start + step_s), start, high);
    const double each = (end - start) / double(words.size());
    for (size_t i = 0; i < words.size(); ++i) {
      words[i].start = start + each * double(i);
      words[i].end = i + 1 < words.size() ? words[i].start + each : end;
    }
  }
  segment.start = words.front().start, segment.end = words.back().end;
}

}  // namespace

std::string SpeechRun::text_of(std::span<const int32_t> tokens) const {
  std::string bytes;
  for (const int32_t id : tokens) parts_.tokenizer.append_bytes(id, bytes);
  return sanitize_utf8(bytes);
}

// Silence, as the model sees it: it doubts that there is speech, and what it writes is improbable. The few words that
// it writes into silence are more probable than other text there. Where no temperature gave a text worth having, a
// weaker doubt is enough, or a sound in which nothing stands out.
bool SpeechRun::no_speech(const Piece& piece, const WindowText& text) const {
  const auto letters = static_cast<int64_t>(letters_of(text.text).size());
  if (text.silent() || letters == 0) return true;
  if (letters <= few_letters && text.no_speech_prob > 0.6 && text.avg_logprob < -0.6) return true;
  const bool improbable = text.doubtful && text.avg_logprob < -1;
  return improbable && (text.no_speech_prob > 0.3 || !piece.levels.stands_out());
}

bool SpeechRun::drops(const Piece& piece, const WindowText& text) const {
  const bool dropped = no_speech(piece, text) || (repeats(text) && unsure(piece, text));
  if (dropped) {
    log_verbose("{}: at {:.2f} s no speech (probability {:.2f}), so not:{} (mean log probability {:.2f})",
                source_.name(), double(piece.at) / rate, text.no_speech_prob, text.text, text.avg_logprob);
  }
  return dropped;
}

// Weak reasons, enough to drop a text that was there before: much time for few letters, and the model or the sound's
// level in doubt.
bool SpeechRun::unsure(const Piece& piece, const WindowText& text) const {
  const double letters = double(letters_of(text.text).size()), seconds = double(piece.length) / rate;
  const bool sparse = letters < 3 * seconds;
  return sparse && (text.no_speech_prob > 0.1 || text.avg_logprob < -0.5 || !piece.levels.stands_out());
}

WindowCut SpeechRun::cut(const Piece& piece, const WindowText& text) {
  const int64_t length = (piece.length + step - 1) / step;
  // A text that ended within a piece of its own has nothing left to decode again.
  const bool all = !options_.timestamps || (!options_.context && text.ended);
  WindowCut parts = cut_window(text.tokens, parts_.vocabulary, length, all);
  // A text that ends although the sound goes on, much of it loud, has left speech out: that is decoded anew.
  if (parts.advance == length && !parts.segments.empty()) {
    const int64_t end = parts.segments.back().end;
    if (piece.levels.loud_frames(2 * end, 2 * length) >= left_out) parts.advance = end;
  }
  // The same where it claims to tell of much more sound than so few letters can: it goes on at the first pause after
  // the time that they take at least. Not twice in a row: there is loud sound that isn't speech.
  shortened_ = !shortened_ && leaves_out(piece, text);
  if (shortened_) {
    const double seconds = double(letters_of(text.text).size()) / most_letters;
    const int64_t end = piece.levels.pause_after(static_cast<int64_t>(seconds * rate) / SoundLevels::frame) / 2;
    parts.advance = std::min(parts.advance, end);
    for (WindowSegment& s : parts.segments) s.start = std::min(s.start, end), s.end = std::min(s.end, end);
  }
  if (parts.advance < std::min(slow, length) && slow_) {
    parts = cut_window(text.tokens, parts_.vocabulary, length, true);
  }
  slow_ = parts.advance < slow;
  parts.advance = std::max<int64_t>(parts.advance, 1);
  return parts;
}

bool SpeechRun::repeats(const WindowText& text) const {
  const auto parts = cut_window(text.tokens, parts_.vocabulary, parts_.vocabulary.audio_positions, true);
  std::vector<std::string> texts;
  for (const WindowSegment& s : parts.segments) texts.push_back(text_of(s.tokens));
  return repetition_.again(texts);
}

// Far fewer letters than so much loud sound has if it is speech (10 to 15 a second).
bool SpeechRun::leaves_out(const Piece& piece, const WindowText& text) const {
  const WindowCut parts = cut_window(text.tokens, parts_.vocabulary, (piece.length + step - 1) / step, false);
  const double loud = double(piece.levels.loud_frames(0, 2 * parts.advance)) * SoundLevels::frame / rate;
  size_t letters = 0;
  for (const WindowSegment& s : parts.segments) letters += letters_of(text_of(s.tokens)).size();
  return loud > 5 && double(letters) < 4 * loud;
}

// Moves a start out of a long silence before it, and an end out of one after it.
void SpeechRun::trim(const Piece& piece, double& start, double& end) const {
  const double origin = double(piece.at) / rate, frame = double(SoundLevels::frame) / rate;
  const auto from = static_cast<int64_t>((start - origin) / frame), to = static_cast<int64_t>((end - origin) / frame);
  const auto first = piece.levels.first_loud(from, to);
  if (!first) return;
  const int64_t before = from < 5 ? piece.quiet_before : 0;  // a first word goes on from it
  if (*first - from + before >= long_silence) start = origin + double(*first - 5) * frame;
  const auto last = piece.levels.last_loud(from, to);
  if (last && to - *last >= long_tail) end = std::max(start, origin + double(*last + 10) * frame);
}

std::vector<SpeechRun::Word> SpeechRun::words_of(const Piece& piece, const WindowCut& cut) {
  const WhisperVocabulary& v = parts_.vocabulary;
  std::vector<int32_t> text;
  std::vector<size_t> breaks;
  for (const WindowSegment& s : cut.segments) {
    breaks.push_back(text.size());
    text.insert(text.end(), s.tokens.begin(), s.tokens.end());
  }
  if (text.empty()) return {};
  WindowSettings plain = settings_;
  plain.timestamps = false;
  std::vector<int32_t> tokens = decoder_.prompt({piece.window, {}}, plain);
  const auto first_row = static_cast<int64_t>(tokens.size()) - 1, rows = static_cast<int64_t>(text.size()) + 1;
  tokens.insert(tokens.end(), text.begin(), text.end());
  tokens.push_back(v.end);
  const auto alignment = parts_.model.align(piece.window, tokens, parts_.vocabulary.end);
  const int64_t frames = (piece.length + SoundLevels::frame - 1) / SoundLevels::frame;
  const int64_t columns = std::clamp<int64_t>(frames / 2, 1, alignment.positions);
  const auto matrix = alignment_matrix(alignment, first_row, rows, columns);
  const auto enters = enter_columns(matrix, rows, columns);
  const double origin = double(piece.at) / rate;
  std::vector<Word> words;
  for (WordSpan& word : split_words(text, parts_.tokenizer, result_.language, breaks)) {
    TimedWord timed{std::move(word.text), origin + double(enters[word.first]) * step_s,
                    origin + double(enters[word.last]) * step_s, 0};
    for (size_t k = word.first; k < word.last; ++k) {
      timed.probability += double(alignment.probability[static_cast<size_t>(first_row) + k]);
    }
    timed.probability /= double(word.last - word.first);
    trim(piece, timed.start, timed.end);
    words.push_back({std::move(timed), word.first, word.last});
  }
  return words;
}

std::vector<TimedSegment> SpeechRun::timed(const Piece& piece, const WindowText& text, const WindowCut& cut) {
  const double origin = double(piece.at) / rate;
  std::vector<Part> parts;
  size_t token = 0;
  for (const WindowSegment& s : cut.segments) {
    TimedSegment segment;
    segment.start = origin + double(s.start) * step_s, segment.end = origin + double(s.end) * step_s;
    segment.text = text_of(s.tokens);
    segment.tokens = s.all_tokens;
    segment.avg_logprob = text.avg_logprob, segment.no_speech_prob = text.no_speech_prob;
    segment.compression_ratio = text.compression_ratio, segment.temperature = text.temperature;
    Part part{std::move(segment), token, token + s.tokens.size()};
    if (speech_) std::tie(part.low, part.high) = speech_->cuts_around(part.segment.start, part.segment.end);
    parts.push_back(std::move(part));
    token += s.tokens.size();
  }
  const bool cuts = std::any_of(parts.begin(), parts.end(), [this](const Part& p) { return spans_cut(p.segment); });
  std::vector<Word> words;
  if (options_.word_times || cuts) words = words_of(piece, cut);
  if (cuts) parts = split_at_cuts(std::move(parts), words);
  std::vector<TimedSegment> segments;
  size_t word = 0;
  for (Part& p : parts) {
    for (; word < words.size() && words[word].first < p.last; ++word) {
      if (!options_.word_times) continue;
      TimedWord& w = p.segment.words.emplace_back(std::move(words[word].timed));
      w.start = std::clamp(w.start, p.low, p.high), w.end = std::clamp(w.end, p.low, p.high);
    }
    if (!p.segment.words.empty()) {
      time_by_words(p.segment, p.low, p.high);
    } else {
      trim(piece, p.segment.start, p.segment.end);
    }
    segments.push_back(std::move(p.segment));
  }
  return segments;
}

// Times in order and within [what is emitted, limit], whatever the model wrote.
void SpeechRun::emit(TimedSegment segment, double limit) {
  const auto place = [](double time, double low, double high) { return std::min(std::max(time, low), high); };
  segment.id = static_cast<int64_t>(result_.segments.size());
  segment.start = place(segment.start, last_end_, limit);
  segment.end = place(segment.end, segment.start, limit);
  double at = segment.start;
  for (TimedWord& w : segment.words) {
    w.start = place(w.start, at, segment.end);
    at = w.end = place(w.end, w.start, segment.end);
  }
  last_end_ = segment.end;
  result_.segments.push_back(in_recording(std::move(segment)));
  if (callbacks_.on_segment && !callbacks_.on_segment(result_.segments.back())) result_.stop = Stop::cancelled;
}

void SpeechRun::accept(const Piece& piece, const WindowText& text, const WindowCut& cut) {
  const double limit = double(piece.at + piece.length) / rate;
  std::vector<std::string> texts;
  for (TimedSegment& s : timed(piece, text, cut)) {
    texts.push_back(s.text);
    emit(std::move(s), limit);
    if (result_.stop != Stop::end_token) break;
  }
  repetition_.add(texts);
}

void SpeechRun::remember(const WindowText& text, const WindowCut& cut) {
  if (text.temperature > 0.5 || text.doubtful) {
    context_.clear();
    return;
  }
  for (const WindowSegment& s : cut.segments) context_.insert(context_.end(), s.all_tokens.begin(), s.all_tokens.end());
  const auto most = static_cast<size_t>(parts_.vocabulary.text_positions / 2);
  if (context_.size() > most) context_.erase(context_.begin(), context_.end() - static_cast<std::ptrdiff_t>(most));
}

}  // namespace consonant
