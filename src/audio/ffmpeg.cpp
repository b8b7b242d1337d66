// SPDX-License-Identifier: Apache-2.0
#include "audio/ffmpeg.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <vector>

#include "audio/descriptor.hpp"
#include "audio/wav.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"

namespace consonant {

namespace {

constexpr size_t kept_words = 2000;  // bytes of what it wrote to stderr, the last ones

struct Pipe {
  Descriptor read, write;
  Pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0)
      throw_error(Exit::failed, "no pipe to ffmpeg: {}", std::generic_category().message(errno));
    read = Descriptor(ends[0]);
    write = Descriptor(ends[1]);
  }
};

// What the new process does before it becomes the program; only calls that are safe between fork and exec. A process
// group of its own: Ctrl-C reaches this program alone, and stopping it stops what it may have started itself. Its
// environment is this program's.
[[noreturn]] void become(char* const* argv, int in, int out, int err, int report) {
  ::setpgid(0, 0);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int signal : {SIGINT, SIGTERM, SIGPIPE}) ::signal(signal, SIG_DFL);
  if (::dup2(in, 0) >= 0 && ::dup2(out, 1) >= 0 && ::dup2(err, 2) >= 0) ::execvp(argv[0], argv);
  const int error = errno;
  const ssize_t told = ::write(report, &error, sizeof error);
  ::_exit(told == sizeof error ? 127 : 126);
}

class Child {
 public:
  Child(std::string file, double patience) : file_(std::move(file)), patience_(patience) {}
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() { stop(); }

  // False if there is no such program.
  bool start(const std::string& program, const std::vector<std::string>& arguments, int in) {
    Pipe out, err, report;
    std::vector<char*> argv;
    argv.push_back(const_cast<char*>(program.c_str()));
    for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) become(argv.data(), in, out.write.value(), err.write.value(), report.write.value());
    if (pid_ < 0) cant_start(program, errno);
    // Also from this side, so that it is so whoever runs first.
    ::setpgid(pid_, pid_);
    report.write.close();
    int error = 0;
    ssize_t told = 0;
    while ((told = ::read(report.read.value(), &error, sizeof error)) < 0 && errno == EINTR) {
    }
    if (told == sizeof error) {
      stop();
      if (error == ENOENT || error == EACCES || error == ENOTDIR) return false;
      cant_start(program, error);
    }
    out_ = std::move(out.read);
    err_ = std::move(err.read);
    return true;
  }

  // What it wrote, as it comes; 0 at its end.
  int64_t read(std::span<std::byte> to) {
    const Deadline deadline = Deadline::after(patience_);
    while (out_.value() >= 0) {
      std::array<pollfd, 2> ready = {pollfd{out_.value(), POLLIN, 0}, pollfd{err_.value(), POLLIN, 0}};
      const double left = deadline.left();
      if (left <= 0) give_up();
      const int n = ::poll(ready.data(), ready.size(), static_cast<int>(std::min(left, 3600.0) * 1000) + 1);
      if (n < 0 && errno != EINTR)
        throw_error(Exit::failed, "{}: waiting for ffmpeg: {}", file_, std::generic_category().message(errno));
      if (n <= 0) continue;
      if (ready[1].revents != 0) listen();
      if (ready[0].revents == 0) continue;
      const ssize_t got = ::read(out_.value(), to.data(), to.size());
      if (got < 0 && errno == EINTR) continue;
      if (got > 0) return got;
      out_.close();
      end();
    }
    return 0;
  }

  // After the end: empty if it ended well, else what it said.
  const std::string& failure() const { return failure_; }

 private:
  [[noreturn]] void cant_start(const std::string& program, int error) const {
    throw_error(Exit::failed, "{}: {} can't be started: {}", file_, program, std::generic_category().message(error));
  }

  void listen() {
    std::array<char, 1024> block;
    const ssize_t n = ::read(err_.value(), block.data(), block.size());
    if (n < 0 && errno == EINTR) return;
    if (n <= 0) return err_.close();
    words_.append(block.data(), static_cast<size_t>(n));
    if (words_.size() > kept_words) words_.erase(0, words_.size() - kept_words);
  }

  // Its output has ended: it should follow at once, its last words first.
  void end() {
    const Deadline deadline = Deadline::after(std::min(patience_, 5.0));
    while (err_.value() >= 0 && !deadline.passed()) {
      pollfd ready{err_.value(), POLLIN, 0};
      if (::poll(&ready, 1, 50) > 0) listen();
    }
    int status = 0;
    pid_t gone = 0;
    while ((gone = ::waitpid(pid_, &status, WNOHANG)) == 0 && !deadline.passed()) ::usleep(1000);
    if (gone == 0 || (gone < 0 && errno == EINTR)) return stop();
    pid_ = -1;
    if (WIFSIGNALED(status)) failure_ = fmt::format("ffmpeg was ended by signal {}", WTERMSIG(status));
    if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
      failure_ = fmt::format("ffmpeg ended with code {}", WEXITSTATUS(status));
    if (!failure_.empty() && !words().empty()) failure_ += ": " + words();
  }

  [[noreturn]] void give_up() {
    stop();
    const std::string said = words().empty() ? "" : ": " + words();
    bad_input("{}: ffmpeg gave nothing for {} s and was stopped{}", file_, patience_, said);
  }

  void stop() {
    out_.close();
    err_.close();
    if (pid_ <= 0) return;
    ::kill(-pid_, SIGKILL);
    ::kill(pid_, SIGKILL);
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
  }

  // In one line.
  std::string words() const {
    std::string line;
    for (const char c : words_) {
      if (c == '\n' || c == '\r') {
        if (!line.empty() && !line.ends_with("; ")) line += "; ";
      } else if (static_cast<unsigned char>(c) >= 0x20) {
        line += c;
      }
    }
    while (line.ends_with(' ') || line.ends_with(';')) line.pop_back();
    return line;
  }

  std::string file_, words_, failure_;
  double patience_;
  pid_t pid_ = -1;
  Descriptor out_, err_;
};

class FfmpegFrames : public FrameSource {
 public:
  FfmpegFrames(const std::string& name, std::shared_ptr<Child> child, std::unique_ptr<FrameSource> frames)
      : child_(std::move(child)), frames_from_(std::move(frames)) {
    set_layout(name, frames_from_->rate(), frames_from_->channels());
  }
  int64_t read(std::span<float> to) override { return frames_from_->read(to); }
  std::string fault() const override { return child_->failure(); }

 private:
  std::shared_ptr<Child> child_;
  std::unique_ptr<FrameSource> frames_from_;
};

}  // namespace

std::unique_ptr<FrameSource> open_with_ffmpeg(ByteSource& bytes, const ReadSettings& settings) {
  if (settings.ffmpeg.empty() || bytes.descriptor() < 0) return nullptr;
  auto child = std::make_shared<Child>(bytes.name(), settings.ffmpeg_patience);
  // The file is opened anew through its descriptor: it may have no name, and a name may be anything. Only local files:
  // a playlist in disguise must not reach out.
  const std::vector<std::string> arguments = {
      "-nostdin", "-hide_banner",  "-loglevel", "error", "-protocol_whitelist", "file", "-i",  "file:/dev/fd/0", "-map",
      "0:a:0",    "-map_metadata", "-1",        "-c:a",  "pcm_f32le",           "-f",   "wav", "pipe:1"};
  if (!child->start(settings.ffmpeg, arguments, bytes.descriptor())) return nullptr;
  auto output = bytes_of_stream([child](std::span<std::byte> to) { return child->read(to); }, bytes.name());
  std::array<std::byte, 1> first;
  if (output->read(first) == 0)
    bad_input("{}: {}", bytes.name(), child->failure().empty() ? "ffmpeg found no sound in it" : child->failure());
  std::unique_ptr<FrameSource> frames;
  try {
    frames = open_wav(output);
  } catch (const Error& error) {
    bad_input("{} (in what ffmpeg wrote)", error.what());
  }
  if (frames == nullptr) bad_input("{}: ffmpeg wrote a WAV file of another kind than it was asked for", bytes.name());
  return std::make_unique<FfmpegFrames>(bytes.name(), std::move(child), std::move(frames));
}

}  // namespace consonant
