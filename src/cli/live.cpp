// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>

#include "base/error.hpp"
#include "base/log.hpp"
#include "cli/interrupt.hpp"
#include "cli/progress.hpp"
#include "cli/recordings.hpp"
#include "cli/transcribe.hpp"
#include "cli/transcript_output.hpp"

namespace consonant {
namespace {

constexpr int64_t rate = AudioInput::rate;
constexpr int64_t step = rate;                    // new sound before it is looked at again
constexpr int64_t longest = 25 * rate;            // sound held at most: a window of Whisper is 30 s
constexpr int64_t queue_room = 60 * rate;         // sound that waits to be looked at
constexpr double settled = 1.0;                   // seconds that follow a segment which is over
constexpr double silence_kept = 5, margin = 0.5;  // seconds that are kept: of silence, before a segment

// Standard input, cut off when `cancel` is called, which a read that waits for more would not notice: a thread copies
// it into a pipe.
class StoppableInput {
 public:
  explicit StoppableInput(int from) : from_(from) {
    if (pipe2(data_, O_CLOEXEC) != 0 || pipe2(stop_, O_CLOEXEC) != 0)
      throw_error(Exit::failed, "standard input: no pipe: {}", std::strerror(errno));
    copier_ = std::thread([this] { copy(); });
  }
  ~StoppableInput() {
    close(data_[0]);  // a copy that waits for room ends
    cancel();
    copier_.join();
    close(stop_[0]);
    close(stop_[1]);
  }
  StoppableInput(const StoppableInput&) = delete;
  StoppableInput& operator=(const StoppableInput&) = delete;

  int descriptor() const { return data_[0]; }
  void cancel() noexcept {
    if (write(stop_[1], "", 1) < 0) return;  // full: it was told already
  }

 private:
  void copy() {
    sigset_t broken_pipe;
    sigemptyset(&broken_pipe);
    sigaddset(&broken_pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &broken_pipe, nullptr);
    char buffer[1 << 14];
    for (;;) {
      pollfd waiting[] = {{from_, POLLIN, 0}, {stop_[0], POLLIN, 0}};
      if (poll(waiting, 2, -1) < 0 && errno != EINTR) break;
      if (waiting[1].revents != 0) break;
      if (waiting[0].revents == 0) continue;
      const ssize_t n = read(from_, buffer, sizeof buffer);
      if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (n <= 0 || !put({buffer, size_t(n)})) break;
    }
    close(data_[1]);
  }
  bool put(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = write(data_[1], bytes.data(), bytes.size());
      if (n < 0 && errno != EINTR) return false;
      if (n > 0) bytes.remove_prefix(size_t(n));
    }
    return true;
  }

  int from_, data_[2] = {-1, -1}, stop_[2] = {-1, -1};
  std::thread copier_;
};

// Reads a source on a thread of its own, so that no sound is lost while a window is transcribed.
class Listener {
 public:
  explicit Listener(AudioInput& audio) : audio_(audio), thread_([this] { listen(); }) {}
  ~Listener() {
    {
      const std::lock_guard lock(mutex_);
      leave_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // Waits for `least` samples, or the end; moves at most `most` to the end of `to`. False if there are none.
  bool take(std::vector<float>& to, int64_t least, int64_t most, const Deadline& deadline) {
    std::unique_lock lock(mutex_);
    const auto enough = [&] { return ended_ || int64_t(heard_.size()) >= least; };
    if (deadline.is_set()) {
      changed_.wait_for(lock, std::chrono::duration<double>(std::max(deadline.left(), 0.0)), enough);
    } else {
      changed_.wait(lock, enough);
    }
    const auto n = std::min<int64_t>(int64_t(heard_.size()), most);
    to.insert(to.end(), heard_.begin(), heard_.begin() + n);
    heard_.erase(heard_.begin(), heard_.begin() + n);
    if (failure_ && heard_.empty()) std::rethrow_exception(failure_);
    changed_.notify_all();
    return n > 0;
  }

 private:
  void listen() {
    std::vector<float> block(rate / 10);
    try {
      for (;;) {
        const int64_t n = audio_.read(block);
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return leave_ || int64_t(heard_.size()) < queue_room; });
        heard_.insert(heard_.end(), block.begin(), block.begin() + n);
        ended_ = leave_ || n < int64_t(block.size());
        changed_.notify_all();
        if (ended_) return;
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      failure_ = std::current_exception();
      ended_ = true;
      changed_.notify_all();
    }
  }

  AudioInput& audio_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<float> heard_;
  std::exception_ptr failure_;
  bool ended_ = false, leave_ = false;
  std::thread thread_;
};

// What is being said, from sound that is looked at again and again until its text has settled. A segment is final when
// another one follows it, or a second without speech, or when it fills the window. Its text isn't the prompt of what
// comes next: on stretches of a few seconds small models then leave out what was said before in other words.
class Live {
 public:
  Live(World& world, const TranscribeFlags& flags, const std::vector<std::string>& formats)
      : world_(world), flags_(flags), formats_(formats), options_(flags.options()) {}

  int operator()();

 private:
  // `source.cancel()` ends the sound.
  template <class Source>
  void listen(AudioInput& audio, Source& source);
  bool look(bool last);
  void finish_segments(std::vector<Segment>& segments, size_t count);
  void drop(double seconds);
  int write();

  World& world_;
  const TranscribeFlags& flags_;
  const std::vector<std::string>& formats_;
  TranscribeOptions options_;
  std::shared_ptr<Transcriber> transcriber_;
  Progress partial_;
  std::vector<float> sound_;  // not settled yet
  double dropped_ = 0;        // seconds before it
  Transcript transcript_;
};

void Live::drop(double seconds) {
  const int64_t n = std::clamp<int64_t>(std::llround(seconds * double(rate)), 0, int64_t(sound_.size()));
  sound_.erase(sound_.begin(), sound_.begin() + n);
  dropped_ += double(n) / double(rate);
}

// The first `count` segments are final: written, and their sound forgotten.
void Live::finish_segments(std::vector<Segment>& segments, size_t count) {
  if (count == 0) return;
  const double end = segments[count - 1].end;
  for (size_t i = 0; i < count; ++i) {
    Segment segment = shifted(std::move(segments[i]), dropped_);
    const std::string text = text_of_segment(world_, segment);
    if (text.empty()) continue;
    segment.id = int64_t(transcript_.segments.size());
    partial_.clear();
    if (!flags_.out && formats_[0] == "txt") world_.out.write(text);
    transcript_.text += segment.text;
    transcript_.segments.push_back(std::move(segment));
  }
  drop(end);
}

// Transcribes the sound that hasn't settled; false if the run has to end.
bool Live::look(bool last) {
  options_.deadline = deadline_left(world_, flags_.deadline.value_or(0));
  const std::unique_ptr<AudioInput> audio = world_.speech.of_samples(sound_, "what was said");
  Transcript now = transcriber_->transcribe(*audio, options_, {});
  std::vector<Segment>& segments = now.segments;
  if (transcript_.language.empty() || !segments.empty()) {
    transcript_.language = now.language;
    transcript_.language_probability = now.language_probability;
  }
  transcript_.stop_reason = now.stop_reason;
  if (exit_code(now.stop_reason) != 0) return false;
  const double length = double(sound_.size()) / double(rate);
  size_t final = segments.size();
  if (!last && !segments.empty() && segments.back().end > length - settled) --final;
  const bool fills = int64_t(sound_.size()) >= longest && !segments.empty() && segments[0].start < settled;
  if (final == 0 && fills) final = segments.size();
  std::string open;
  for (size_t i = final; i < segments.size(); ++i) open += segments[i].text;
  // Before what is still being said nothing is of use. After what is final there may be more that wasn't understood
  // yet, and in silence a word may just begin.
  const double before = dropped_;
  const double useless = final < segments.size() ? segments[final].start - margin
                         : segments.empty()      ? length - silence_kept
                                                 : segments.back().end;
  // A language that was found with some certainty stays: the next stretch may be too short to tell.
  if (final > 0 && now.language_probability >= 0.5) options_.language = now.language;
  finish_segments(segments, final);
  drop(useless - (dropped_ - before));
  if (int64_t(sound_.size()) >= longest) drop(length - silence_kept);  // there has to be room for more
  if (!open.empty()) partial_.show(open, true);
  return true;
}

template <class Source>
void Live::listen(AudioInput& audio, Source& source) {
  Listener listener(audio);
  struct Stop {
    Source& source;
    ~Stop() { source.cancel(); }  // a read that waits for sound would keep the listener
  } const stop{source};
  const double limit = flags_.duration.value_or(0);
  const Deadline deadline = flags_.deadline ? Deadline::after(deadline_left(world_, *flags_.deadline)) : Deadline();
  for (bool more = true; more;) {
    int64_t room = longest - int64_t(sound_.size());
    if (limit > 0) room = std::min(room, int64_t((limit - dropped_) * double(rate)) - int64_t(sound_.size()));
    more = room > 0 && listener.take(sound_, std::min(step, room), room, deadline);
    if (sound_.empty() || !look(!more)) break;
  }
  if (deadline.passed()) transcript_.stop_reason = StopReason::deadline;
  transcript_.duration = dropped_ + double(sound_.size()) / double(rate);
  partial_.clear();
}

int Live::write() {
  transcript_.file = flags_.pcm ? "standard input" : "microphone";
  if (flags_.out && *flags_.out != "-") {
    for (const Job& job : plan_outputs({{"-", "live", ""}}, {"-"}, *flags_.out, formats_))
      for (const Result& result : job.results)
        write_result(result.path,
                     file_document(world_, transcript_, result.format, flags_.subtitles(), transcriber_->info()));
  } else if (formats_[0] != "txt") {
    world_.out.write(document(world_, transcript_, formats_[0], flags_.subtitles(), transcriber_->info()));
  }
  const int code = exit_code(transcript_.stop_reason);
  if (code != 0) log_warning("ended after {:.1f} s: {}", transcript_.duration, name(transcript_.stop_reason));
  return code;
}

int Live::operator()() {
  if (formats_.size() > 1 && !flags_.out)
    bad_usage("--format {}: several formats need a folder to be written to: -o FOLDER", fmt::join(formats_, ","));
  if (flags_.out && *flags_.out != "-") plan_outputs({{"-", "live", ""}}, {"-"}, *flags_.out, formats_);  // can it be?
  transcriber_ = flags_.load(world_, options_);
  if (flags_.pcm) {
    StoppableInput input(world_.in);
    const Interrupts::Cancels cancels(input);
    const auto audio = world_.speech.open_stream(input.descriptor(), *flags_.pcm, {});
    listen(*audio, input);
  } else {
    const std::unique_ptr<Microphone> microphone = world_.speech.open_microphone();
    struct Source {
      Microphone& microphone;
      void cancel() noexcept { microphone.stop(); }
    } source{*microphone};
    const Interrupts::Cancels cancels(source);
    if (log_level() >= LogLevel::normal) log_line("listening; Ctrl-C ends");
    listen(*microphone, source);
    for (const std::string& warning : microphone->warnings()) log_warning("{}", warning);
  }
  return write();
}

}  // namespace

int transcribe_live(World& world, const TranscribeFlags& flags, const std::vector<std::string>& formats) {
  return Live(world, flags, formats)();
}

}  // namespace consonant
