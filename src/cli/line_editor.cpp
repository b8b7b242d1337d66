// SPDX-License-Identifier: Apache-2.0
#include "cli/line_editor.hpp"

#include <histedit.h>
#include <langinfo.h>
#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>

#include "base/error.hpp"
#include "base/utf8.hpp"
#include "cli/interrupt.hpp"

namespace consonant {
namespace {

class PlainLines : public LineReader {
 public:
  explicit PlainLines(int fd) : fd_(fd) {}

  std::optional<std::string> next(bool& interrupted) override {
    interrupted = false;
    while (true) {
      const size_t newline = buffer_.find('\n');
      if (newline != std::string::npos) {
        std::string line = buffer_.substr(0, newline);
        buffer_.erase(0, newline + 1);
        if (line.ends_with('\r')) line.pop_back();
        return line;
      }
      if (Interrupts::wait_for_input(fd_) == SIGINT) {
        interrupted = true;
        return "";
      }
      char part[4096];
      const ssize_t n = read(fd_, part, sizeof part);
      if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (n < 0) throw_error(Exit::failed, "reading standard input: {}", std::strerror(errno));
      if (n == 0) {
        if (buffer_.empty()) return std::nullopt;
        buffer_ += '\n';
      }
      buffer_.append(part, size_t(n));
    }
  }

 private:
  int fd_;
  std::string buffer_;
};

// The editor works on wide characters: in a locale of bytes nothing but ASCII could be typed.
void use_utf8() {
  setlocale(LC_CTYPE, "");
  if (std::strcmp(nl_langinfo(CODESET), "UTF-8") != 0) setlocale(LC_CTYPE, "C.UTF-8");
}

class EditedLines : public LineReader {
 public:
  EditedLines(FILE* in, std::string prompt) : mode_(fileno(in)), in_(in), prompt_(std::move(prompt)) {
    use_utf8();
    edit_.reset(el_init("consonant", in_, stderr, stderr));
    history_.reset(history_init());
    if (!edit_ || !history_) throw_error(Exit::failed, "the line editor can't be started");
    el_set(edit_.get(), EL_CLIENTDATA, this);
    el_set(edit_.get(), EL_PROMPT, &EditedLines::prompt_of);
    el_set(edit_.get(), EL_GETCFN, &EditedLines::read_character);
    el_set(edit_.get(), EL_EDITOR, "emacs");
    el_set(edit_.get(), EL_HIST, history, history_.get());
    HistEvent event;
    history(history_.get(), &event, H_SETSIZE, 1000);
    history(history_.get(), &event, H_SETUNIQUE, 1);
  }

  std::optional<std::string> next(bool& interrupted) override {
    interrupted = false;
    interrupted_ = false;
    failure_ = nullptr;
    const Interrupts::Editing editing;
    int n = 0;
    const char* text = el_gets(edit_.get(), &n);
    if (interrupted_) {
      interrupted = true;
      el_reset(edit_.get());
      std::fputc('\n', stderr);
      return "";
    }
    if (failure_) std::rethrow_exception(failure_);
    if (!text || n <= 0) {
      std::fputc('\n', stderr);
      return std::nullopt;
    }
    std::string line(text);
    HistEvent event;
    if (line.find_first_not_of(" \t\n") != std::string::npos) history(history_.get(), &event, H_ENTER, line.c_str());
    if (line.ends_with('\n')) line.pop_back();
    return line;
  }

 private:
  static char* prompt_of(EditLine* edit) {
    EditedLines* self = nullptr;
    el_get(edit, EL_CLIENTDATA, &self);
    return self->prompt_.data();
  }

  // The library's own reader tries again after a signal, so that Ctrl-C would go unnoticed.
  static int read_character(EditLine* edit, wchar_t* character) {
    EditedLines* self = nullptr;
    el_get(edit, EL_CLIENTDATA, &self);
    try {
      return self->read(*character);
    } catch (...) {  // not through the library, which is C
      self->failure_ = std::current_exception();
      return -1;
    }
  }

  // 1, 0 at the end of the input, or -1.
  int read(wchar_t& character) {
    std::string bytes;
    while (bytes.size() < 4) {
      if (const int signal = Interrupts::wait_for_input(fileno(in_))) {
        if (signal == SIGINT) {
          interrupted_ = true;
          return -1;
        }
        obey(signal);
        continue;
      }
      char byte;
      const ssize_t n = ::read(fileno(in_), &byte, 1);
      if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (n <= 0) return int(n);
      bytes += byte;
      const int length = utf8_length(bytes);
      if (length == -2) continue;  // more to come
      size_t at = 0;
      character = length > 0 ? wchar_t(utf8_next(bytes, at)) : wchar_t(0xfffd);
      return 1;
    }
    return -1;
  }

  // Ctrl-Z gives the terminal back while the program is stopped; a window of another size is drawn anew.
  void obey(int signal) {
    if (signal == SIGWINCH) return el_resize(edit_.get());
    el_set(edit_.get(), EL_PREP_TERM, 0);
    struct sigaction stop {
    }, ours;
    stop.sa_handler = SIG_DFL;
    sigaction(SIGTSTP, &stop, &ours);
    raise(SIGTSTP);
    sigaction(SIGTSTP, &ours, nullptr);
    el_set(edit_.get(), EL_PREP_TERM, 1);
    el_set(edit_.get(), EL_REFRESH);
  }

  struct CloseEdit {
    void operator()(EditLine* e) const { el_end(e); }
  };
  struct CloseHistory {
    void operator()(History* h) const { history_end(h); }
  };
  Interrupts::TerminalMode mode_;  // outlives the editor, which sets another
  FILE* in_;
  std::string prompt_;
  bool interrupted_ = false;
  std::exception_ptr failure_;
  std::unique_ptr<History, CloseHistory> history_;
  std::unique_ptr<EditLine, CloseEdit> edit_;
};

}  // namespace

std::unique_ptr<LineReader> LineReader::open(int fd, const std::string& prompt) {
  if (fd == STDIN_FILENO && isatty(fd) && isatty(STDERR_FILENO)) return std::make_unique<EditedLines>(stdin, prompt);
  return std::make_unique<PlainLines>(fd);
}

}  // namespace consonant
