// SPDX-License-Identifier: Apache-2.0
#include "engine/speak_call.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "engine/speak_engine.hpp"
#include "engine/stop_reason.hpp"

namespace consonant {

namespace {

// Frames of a stream that become sound together: a third of a second.
constexpr int64_t streamed_frames = 4;

Sampling sampling_of(const CodeSampling& s, const TtsVocabulary::Draws& own) {
  Sampling sampling;
  sampling.temperature = s.temperature.value_or(own.temperature);
  sampling.top_k = s.top_k.value_or(own.top_k);
  sampling.top_p = s.top_p.value_or(own.top_p);
  sampling.penalty_window = -1;
  sampling.temper_first = true;
  return sampling;
}

bool is_bound(StopReason reason) { return reason == StopReason::input_bound || reason == StopReason::context_full; }

}  // namespace

SpeakCall::SpeakCall(TtsRunner& runner, CodecDecoderRunner& decoder, const Tokenizer& tokenizer,
                     const SpeakOptions& options, const SpeakCallbacks& callbacks, const std::atomic<bool>* cancelled,
                     Clock::time_point start)
    : runner_(runner),
      decoder_(decoder),
      tokenizer_(tokenizer),
      vocabulary_(runner.model().vocabulary()),
      options_(options),
      callbacks_(callbacks),
      cancelled_(cancelled),
      start_(start),
      parts_(cut_sentences(options.text)),
      first_(sampling_of(options.sampling, vocabulary_.first)),
      others_(sampling_of(options.sampling, vocabulary_.others)),
      end_(vocabulary_.end),
      joints_(decoder.model().rate, [this](std::span<const float> samples) {
        if (result_.timings.first_sound_s == 0) result_.timings.first_sound_s = seconds_since(start_);
        return !callbacks_.on_samples || callbacks_.on_samples(samples);
      }) {
  if (parts_.empty())
    bad_input("there is nothing to say in the text: it is empty, or of white space and punctuation alone");
  if (options.deadline > 0) deadline_ = Deadline::after(options.deadline);
  first_.repeat_penalty = options.sampling.repeat_penalty.value_or(vocabulary_.repeat_penalty);
  result_.codebooks = vocabulary_.groups;
  result_.rate = decoder.model().rate;
  for (const SpokenPart& part : parts_) {
    SpokenSentence& sentence = result_.sentences.emplace_back();
    sentence.text = part.text;
    sentence.bound = options.max_frames > 0 ? options.max_frames : frame_bound(part.code_points);
  }
}

Utterance SpeakCall::utterance(size_t sentence, int tries) const {
  Utterance u;
  u.prompt = prompts_[sentence].rows, u.trailing = prompts_[sentence].trailing;
  u.voice = voice_;
  u.first = first_, u.others = others_;
  u.first.seed = options_.sampling.seed + static_cast<uint64_t>(tries - 1);
  u.others.seed = u.first.seed ^ 0x9e3779b97f4a7c15u;  // another sequence of numbers
  u.limits.cancelled = cancelled_;
  u.limits.deadline = deadline_;
  u.limits.end_tokens = {&end_, 1};
  u.limits.context = runner_.context();
  u.limits.input_bound = result_.sentences[sentence].bound;
  return u;
}

void SpeakCall::progress(int64_t frames) {
  frames_ += frames;
  if (callbacks_.on_progress)
    callbacks_.on_progress(
        done_, parts_.size(), frames_,
        static_cast<double>(frames_ * decoder_.model().samples_per_frame) / static_cast<double>(result_.rate));
}

void SpeakCall::take(size_t sentence, Spoken spoken, int tries) {
  SpokenSentence& s = result_.sentences[sentence];
  s.codes = std::move(spoken.codes);
  s.frames = spoken.frames;
  s.stop_reason = to_reason(spoken.stop);
  s.tries = tries;
  s.seed = options_.sampling.seed + static_cast<uint64_t>(tries - 1);
  s.end_ranks.clear(), s.end_probabilities.clear();
  for (const EndStanding& end : spoken.end) {
    s.end_ranks.push_back(end.rank);
    s.end_probabilities.push_back(end.probability);
  }
  result_.timings.prompt_s += spoken.prompt_s;
  result_.timings.frames_s += spoken.frames_s;
}

// One try of each; those that reached their bound come back.
std::vector<size_t> SpeakCall::tried(std::span<const size_t> sentences, int tries, const OnFrame& on_frame) {
  std::vector<Utterance> utterances;
  for (const size_t sentence : sentences) utterances.push_back(utterance(sentence, tries));
  const auto counted = [&](size_t i, std::span<const int32_t> codes) {
    progress(1);
    return !on_frame || on_frame(i, codes);
  };
  std::vector<Spoken> spoken = speak_frames(runner_, utterances, vocabulary_.text_pad, counted);
  std::vector<size_t> failed;
  for (size_t i = 0; i < sentences.size(); ++i) {
    take(sentences[i], std::move(spoken[i]), tries);
    if (is_bound(result_.sentences[sentences[i]].stop_reason)) failed.push_back(sentences[i]);
  }
  return failed;
}

void SpeakCall::decode(std::span<const int32_t> codes) {
  const Clock::time_point start = Clock::now();
  const std::vector<float> samples = decoder_.decode(stream_, codes);
  result_.timings.codec_s += seconds_since(start);
  joints_.add(samples);
}

// The sentence goes on from the recording: what that leaves in the codec's past is heard in its first samples.
void SpeakCall::begin_sound() {
  stream_ = decoder_.open();
  joints_.begin();
  if (!reference_codes_.empty()) decoder_.decode(stream_, reference_codes_);
}

void SpeakCall::end_sound(size_t sentence) {
  joints_.end(sentence + 1 == parts_.size());
  decoder_.close(std::exchange(stream_, -1));
  for (const std::string& fault : joints_.faults())
    result_.warnings.push_back(fmt::format("sentence {}: {}", sentence + 1, fault));
  done_ = sentence + 1;
}

// All frames first: several sentences share a step, and what failed is tried again.
void SpeakCall::speak_at_once() {
  for (size_t first = 0; first < parts_.size() && joints_.wanted();) {
    const size_t last = std::min(parts_.size(), first + static_cast<size_t>(options_.batch));
    std::vector<size_t> pending;
    for (size_t i = first; i < last; ++i) pending.push_back(i);
    const int tries = first_.temperature > 0 ? options_.retries + 1 : 1;  // a greedy try is the same each time
    for (int n = 1; n <= tries && !pending.empty(); ++n) {
      pending = tried(pending, n, {});
      for (size_t i = 0; n < tries && callbacks_.on_retry && i < pending.size(); ++i)
        callbacks_.on_retry(result_.sentences[pending[i]], tries - n);
    }
    for (size_t i = first; i < last && joints_.wanted(); ++i) {
      begin_sound();
      decode(result_.sentences[i].codes);
      end_sound(i);
    }
    first = last;
    if (cancelled_->load() || deadline_.passed()) return;
  }
}

void SpeakCall::speak_streaming() {
  for (size_t i = 0; i < parts_.size() && joints_.wanted(); ++i) {
    begin_sound();
    std::vector<int32_t> waiting;
    const auto room = static_cast<size_t>(streamed_frames * vocabulary_.groups);
    tried({&i, 1}, 1, [&](size_t, std::span<const int32_t> codes) {
      waiting.insert(waiting.end(), codes.begin(), codes.end());
      if (waiting.size() < room) return true;
      decode(std::exchange(waiting, {}));
      return joints_.wanted();
    });
    decode(waiting);
    end_sound(i);
    if (cancelled_->load() || deadline_.passed()) return;
  }
}

// Of sentences that ended by themselves. Two or three say nothing about the usual pace.
void SpeakCall::warn_of_early_ends() {
  std::vector<double> pace;
  for (size_t i = 0; i < parts_.size(); ++i)
    if (result_.sentences[i].stop_reason == StopReason::end_token)
      pace.push_back(static_cast<double>(result_.sentences[i].frames) / static_cast<double>(parts_[i].code_points));
  if (pace.size() < 4) return;
  std::nth_element(pace.begin(), pace.begin() + std::ssize(pace) / 2, pace.end());
  const double median = pace[pace.size() / 2];
  for (size_t i = 0; i < parts_.size(); ++i) {
    const SpokenSentence& s = result_.sentences[i];
    const double own = static_cast<double>(s.frames) / static_cast<double>(parts_[i].code_points);
    if (s.stop_reason == StopReason::end_token && own < median / 3)
      result_.warnings.push_back(
          fmt::format("sentence {} ended after {} frames, {:.2f} a character where the others have {:.2f}: part of it "
                      "may be missing",
                      i + 1, s.frames, own, median));
  }
}

SpeakResult SpeakCall::run(const SpeechRequest& request, std::span<const float> voice) {
  voice_ = voice;
  reference_codes_ = request.reference_codes;
  for (const SpokenPart& part : parts_) {
    SpeechRequest of = request;
    const std::vector<int32_t> text = speech_text(tokenizer_, part.text);
    of.text = text;
    prompts_.push_back(speech_prompt(vocabulary_, tokenizer_, of));
    if (prompts_.back().rows.size() >= runner_.context())
      bad_input("a prompt of {} positions, of which {} are the recording's, doesn't fit the context of {}",
                prompts_.back().rows.size(), std::ssize(reference_codes_) / vocabulary_.groups, runner_.context());
  }
  if (options_.stream)
    speak_streaming();
  else
    speak_at_once();
  for (const SpokenSentence& s : result_.sentences)
    if (s.stop_reason != StopReason::end_token && result_.stop_reason == StopReason::end_token)
      result_.stop_reason = s.stop_reason;
  if (cancelled_->load() || !joints_.wanted()) result_.stop_reason = StopReason::cancelled;
  const bool cut = result_.stop_reason == StopReason::cancelled || result_.stop_reason == StopReason::deadline;
  if (!cut) warn_of_early_ends();
  result_.samples = joints_.samples();
  result_.timings.wall_s = seconds_since(start_);
  return std::move(result_);
}

}  // namespace consonant
