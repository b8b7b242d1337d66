// SPDX-License-Identifier: Apache-2.0
#include "cli/transcribe.hpp"

#include <algorithm>
#include <exception>
#include <set>

#include "base/error.hpp"
#include "base/log.hpp"
#include "cli/commands.hpp"
#include "cli/interrupt.hpp"
#include "cli/progress.hpp"
#include "cli/recordings.hpp"
#include "cli/transcript_output.hpp"

namespace consonant {
namespace {

// An error that isn't one recording's: it ends the run.
struct Fatal {
  std::exception_ptr error;
};

// One call of the command over recordings.
class Run {
 public:
  Run(World& world, const TranscribeFlags& flags, std::vector<std::string> formats)
      : world_(world), flags_(flags), formats_(std::move(formats)), options_(flags.options()) {}
  int operator()();

 private:
  std::vector<Job> plan();
  void leave_finished(std::vector<Job>& jobs);
  void all(const std::vector<Job>& jobs);
  void one(const Job& job, size_t number);
  std::unique_ptr<AudioInput> open(const Job& job) const;
  Transcript transcribe(AudioInput& audio, const Job& job, const std::string& label);
  void write(const Job& job, const Transcript& transcript);
  void say(std::string_view text);
  void fail(const Recording& recording, Exit exit, std::string reason);
  bool ended(const Job& job);
  int finish() const;

  World& world_;
  const TranscribeFlags& flags_;
  const std::vector<std::string> formats_;
  TranscribeOptions options_;
  std::shared_ptr<Transcriber> transcriber_;
  Progress progress_;
  std::vector<std::pair<Exit, std::string>> failures_;
  size_t count_ = 0, skipped_ = 0, done_ = 0;
  std::optional<StopReason> stopped_;  // why the run ended before its recordings did
};

void Run::fail(const Recording& recording, Exit exit, std::string reason) {
  const std::string name = recording.path == "-" ? "standard input" : recording.path;
  if (!reason.starts_with(name)) reason = name + ": " + reason;
  failures_.emplace_back(exit, std::move(reason));
}

std::vector<Job> Run::plan() {
  std::vector<Recording> recordings = find_recordings(flags_.inputs, flags_.recursive);
  if (recordings.empty()) bad_input("{}: no recording", fmt::join(flags_.inputs, ", "));
  if (flags_.out && *flags_.out != "-")
    return plan_outputs(std::move(recordings), flags_.inputs, *flags_.out, formats_);
  if (formats_.size() > 1)
    bad_usage("--format {}: several formats need a folder to be written to: -o FOLDER", fmt::join(formats_, ","));
  std::vector<Job> jobs;
  for (Recording& recording : recordings) jobs.push_back({std::move(recording), {}});
  return jobs;
}

// A result under its final name is whole. In a folder it stays, so that the same command goes on where it was stopped;
// a file that was named is what the user wants written. Standard input has no name that would tell what it holds.
void Run::leave_finished(std::vector<Job>& jobs) {
  if (flags_.force || !flags_.out || !is_folder_output(flags_.inputs, *flags_.out, formats_)) return;
  std::erase_if(jobs, [&](Job& job) {
    if (job.recording.path == "-") return false;
    std::error_code error;
    std::erase_if(job.results, [&](const Result& r) { return std::filesystem::is_regular_file(r.path, error); });
    if (!job.results.empty()) return false;
    log_verbose("{}: its result is there already", job.recording.path);
    ++skipped_;
    return true;
  });
}

std::unique_ptr<AudioInput> Run::open(const Job& job) const {
  const Recording& r = job.recording;
  if (r.path == "-") return world_.speech.open_stream(world_.in, flags_.pcm.value_or(""), flags_.audio());
  return world_.speech.open(r.path, flags_.audio());
}

void Run::say(std::string_view text) {
  if (world_.out.terminal()) progress_.clear();
  try {
    world_.out.write(text);
  } catch (...) {
    throw Fatal{std::current_exception()};
  }
}

Transcript Run::transcribe(AudioInput& audio, const Job& job, const std::string& label) {
  std::exception_ptr failure;  // of a write: the model must not see it, it only stops
  const bool stream = job.results.empty() && formats_[0] == "txt";
  TranscribeCallbacks callbacks;
  callbacks.on_segment = [&](const Segment& segment) {
    try {
      if (stream) say(text_of_segment(world_, shifted(segment, flags_.offset)));
      return Interrupts::count() == 0;
    } catch (...) {
      failure = std::current_exception();
      return false;
    }
  };
  const Clock::time_point begin = Clock::now();
  callbacks.on_progress = [&](double done, double all) {
    const double wall = seconds_since(begin), speed = wall > 0 ? done / wall : 0;
    std::string line = all > 0 ? fmt::format("{}  {:.0f}%", label, 100 * std::min(done / all, 1.0))
                               : fmt::format("{}  {}", label, clock_text(done));
    if (speed > 0) line += fmt::format("  {:.1f}x as fast as it was spoken", speed);
    if (speed > 0 && all > 0) line += fmt::format("  {} left", clock_text((all - done) / speed));
    progress_.show(line);
  };
  progress_.show(label, true);
  options_.deadline = deadline_left(world_, flags_.deadline.value_or(0));
  Transcript result = [&] {
    try {
      return transcriber_->transcribe(audio, options_, callbacks);
    } catch (const Error& error) {  // the same for every recording
      if (error.exit() == Exit::input || error.exit() == Exit::failed) throw;
      throw Fatal{std::current_exception()};
    }
  }();
  progress_.clear();
  if (failure) std::rethrow_exception(failure);
  result.file = audio.name();
  if (flags_.offset > 0) shift(result, flags_.offset);
  return result;
}

void Run::write(const Job& job, const Transcript& transcript) {
  if (!job.results.empty()) {
    for (const Result& result : job.results)
      write_result(result.path,
                   file_document(world_, transcript, result.format, flags_.subtitles(), transcriber_->info()));
    return;
  }
  if (formats_[0] == "txt") return;  // was written while it came
  say(document(world_, transcript, formats_[0], flags_.subtitles(), transcriber_->info()));
}

void Run::one(const Job& job, size_t number) {
  const Recording& recording = job.recording;
  if (!recording.fault.empty()) bad_input("{}: {}", recording.path, recording.fault);
  const std::unique_ptr<AudioInput> audio = open(job);
  const std::string label =
      count_ > 1 ? fmt::format("[{}/{}] {}", number, count_, recording.relative.string()) : recording.relative.string();
  if (count_ > 1 && job.results.empty() && formats_[0] == "txt")
    say(fmt::format("{}==> {} <==\n", number > 1 ? "\n" : "", audio->name()));
  const Clock::time_point begin = Clock::now();
  const Transcript transcript = transcribe(*audio, job, label);
  std::set<std::string> said;
  for (const auto* warnings : {&audio->warnings(), &transcript.warnings})
    for (const std::string& text : *warnings)
      if (said.insert(text).second)
        log_warning("{}{}", text.starts_with(audio->name()) ? "" : audio->name() + ": ", text);
  log_verbose("{}: {:.1f} s of sound in {:.2f} s, language {} ({:.2f}), {} windows, {} decoded again", audio->name(),
              transcript.duration, seconds_since(begin), transcript.language, transcript.language_probability,
              transcript.timings.windows, transcript.timings.fallbacks);
  const bool whole = exit_code(transcript.stop_reason) == 0;
  if (!whole) stopped_ = transcript.stop_reason;
  if (whole || job.results.empty()) write(job, transcript);  // no file holds half a transcript
  if (whole) ++done_;
}

// Whether the run is over before `job`.
bool Run::ended(const Job& job) {
  if (!stopped_ && Interrupts::count() > 0) stopped_ = StopReason::cancelled;
  if (!stopped_ && flags_.deadline && seconds_since(world_.started) >= *flags_.deadline)
    stopped_ = StopReason::deadline;
  if (stopped_) log_verbose("{}: left out", job.recording.path);
  return stopped_.has_value();
}

void Run::all(const std::vector<Job>& jobs) {
  transcriber_ = flags_.load(world_, options_);
  const Interrupts::Cancels cancels(*transcriber_);
  size_t number = skipped_;
  for (const Job& job : jobs) {
    if (ended(job)) break;
    try {
      one(job, ++number);
    } catch (const Fatal& fatal) {
      progress_.clear();
      std::rethrow_exception(fatal.error);
    } catch (const std::bad_alloc&) {
      progress_.clear();
      fail(job.recording, Exit::memory, "not enough memory");
    } catch (const std::exception& error) {
      progress_.clear();
      fail(job.recording, Exit(exit_code(error)), error.what());
    }
  }
}

int Run::finish() const {
  if (count_ == 1 && failures_.size() == 1) throw Error(failures_[0].first, failures_[0].second);
  const bool files = flags_.out && *flags_.out != "-";
  if (stopped_) {
    const size_t left = count_ - skipped_ - done_ - failures_.size();
    log_line(fmt::format("error: {} after {} of {} recordings{}",
                         *stopped_ == StopReason::cancelled ? "interrupted" : "the deadline passed", count_ - left,
                         count_, !files || count_ == 1 ? "" : "; the same command goes on from there"));
  } else if (log_level() >= LogLevel::normal && files && count_ > 1) {
    log_line(fmt::format("{} recordings: {} transcribed, {} there already{}, {} failed", count_, done_, skipped_,
                         skipped_ > 0 ? " (--force replaces them)" : "", failures_.size()));
  } else if (log_level() >= LogLevel::normal && skipped_ > 0) {
    log_line(fmt::format("{}: is there already, left as it is (--force replaces it)", flags_.inputs[0]));
  }
  if (!failures_.empty()) {
    log_line(fmt::format("error: {} of {} recordings failed:", failures_.size(), count_));
    for (const auto& [exit, reason] : failures_) log_line("  " + reason);
  }
  if (stopped_) return exit_code(*stopped_);
  return int(failures_.empty() ? Exit::done : Exit::failed);
}

int Run::operator()() {
  std::vector<Job> jobs = plan();
  count_ = jobs.size();
  leave_finished(jobs);
  // A model takes a while to load: not for recordings that are all missing.
  if (std::any_of(jobs.begin(), jobs.end(), [](const Job& job) { return job.recording.fault.empty(); })) {
    all(jobs);
  } else {
    for (const Job& job : jobs) fail(job.recording, Exit::input, job.recording.fault);
  }
  return finish();
}

}  // namespace

Action add_transcribe(CLI::App& program) {
  CLI::App& app =
      add_command(program, "transcribe", "Recordings, or what is being said, to text",
                  "consonant transcribe -m whisper-base talk.mp3 --format srt -o talk.srt\n"
                  "  consonant transcribe -m whisper-base recordings/ --recursive --format txt,json -o texts/\n"
                  "  consonant transcribe -m whisper-base.en --live");
  auto command = std::make_shared<TranscribeFlags>();
  command->add(app);
  return [command](World& world) {
    command->check();
    const std::vector<std::string> formats = chosen_formats(world, command->formats, command->json);
    const auto has_words = [](const std::string& f) { return f == "json" || f == "srt" || f == "vtt"; };
    if (command->word_times && std::none_of(formats.begin(), formats.end(), has_words))
      log_warning("--word-times: json, srt and vtt make use of them; {} shows none", formats.front());
    const auto has_subtitles = [](const std::string& f) { return f == "srt" || f == "vtt"; };
    if (command->lays_out() && std::none_of(formats.begin(), formats.end(), has_subtitles))
      bad_usage("--split, --max-line, --max-lines: lay out srt and vtt, of which --format {} is neither",
                fmt::join(formats, ","));
    return command->live ? transcribe_live(world, *command, formats) : Run(world, *command, formats)();
  };
}

}  // namespace consonant
