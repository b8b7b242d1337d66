// SPDX-License-Identifier: Apache-2.0
#include "cli/line_editor.hpp"

#include <histedit.h>
#include <langinfo.h>
#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstring>

#include "base/error.hpp"
#include "base/utf8.hpp"

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
      char part[4096];
      const ssize_t n = read(fd_, part, sizeof part);
      if (n < 0 && errno == EINTR) {
        interrupted = true;
        return "";
      }
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
  EditedLines(FILE* in, std::string prompt) : in_(in), prompt_(std::move(prompt)) {
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
    int n = 0;
    const char* text = el_gets(edit_.get(), &n);
    if (interrupted_) {
      interrupted = true;
      el_reset(edit_.get());
      std::fputc('\n', stderr);
      return "";
    }
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
    std::string bytes;
    while (bytes.size() < 4) {
      char byte;
      const ssize_t n = read(fileno(self->in_), &byte, 1);
      if (n <= 0) {
        self->interrupted_ = n < 0 && errno == EINTR;
        return n == 0 ? 0 : -1;
      }
      bytes += byte;
      const int length = utf8_length(bytes);
      if (length == -2) continue;  // more to come
      size_t at = 0;
      *character = length > 0 ? wchar_t(utf8_next(bytes, at)) : wchar_t(0xfffd);
      return 1;
    }
    return -1;
  }

  struct CloseEdit {
    void operator()(EditLine* e) const { el_end(e); }
  };
  struct CloseHistory {
    void operator()(History* h) const { history_end(h); }
  };
  FILE* in_;
  std::string prompt_;
  bool interrupted_ = false;
  std::unique_ptr<History, CloseHistory> history_;
  std::unique_ptr<EditLine, CloseEdit> edit_;
};

}  // namespace

std::unique_ptr<LineReader> LineReader::open(int fd, const std::string& prompt) {
  if (fd == STDIN_FILENO && isatty(fd) && isatty(STDERR_FILENO)) return std::make_unique<EditedLines>(stdin, prompt);
  return std::make_unique<PlainLines>(fd);
}

}  // namespace consonant
