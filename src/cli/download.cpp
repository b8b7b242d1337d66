// SPDX-License-Identifier: Apache-2.0
#include "cli/download.hpp"

#include <algorithm>
#include <optional>

#include "base/error.hpp"
#include "base/log.hpp"
#include "cli/digest.hpp"
#include "cli/http.hpp"
#include "cli/part_file.hpp"

namespace consonant {
namespace {

constexpr int64_t progress_bytes = 1 << 20;  // after which an earlier failure is forgotten

[[noreturn]] void give_up(const std::string& url, const Outcome& outcome) {
  const long status = outcome.head.status;
  const bool wrong_name = outcome.denied || status == 404 || status == 410;
  throw_error(wrong_name ? Exit::input : Exit::failed, "{}: {}{}", url, outcome.error,
              outcome.denied ? " (a model with a licence to accept needs your token: HF_TOKEN)" : "");
}

// One file on its way.
class Download {
 public:
  Download(const Wanted& wanted, const Transfer& transfer)
      : wanted_(wanted), transfer_(transfer), part_(wanted.target), sha256_(wanted.sha256), all_(wanted.size) {
    const PartFile::Note note = part_.note();
    if (part_.size() == 0) return;
    if (note.url != wanted.url || (note.validator.empty() && !checked())) {
      part_.clear();
    } else {
      validator_ = note.validator;
      if (all_ < 0) all_ = note.size;
      log_verbose("{}: going on after {} bytes", wanted.url, part_.size());
    }
  }

  std::string operator()() {
    bool resumed = part_.size() > 0;
    for (;; resumed = false) {
      receive();
      const std::string fault = compare();
      if (fault.empty()) break;
      part_.clear();
      if (!resumed) {
        part_.remove();
        bad_input("{}: {}", wanted_.url, fault);
      }
      log_warning("{}: {}; fetching it again from the start", wanted_.url, fault);
    }
    part_.commit();
    return digest_;
  }

 private:
  bool checked() const { return !sha256_.empty() || !wanted_.git_blob.empty(); }

  bool begin(const Head& head) {
    if (head.status == 206 && head.from != part_.size()) {
      problem_ =
          Error(Exit::failed, fmt::format("{}: byte {} was asked for, {} came", wanted_.url, part_.size(), head.from));
      return false;
    }
    if (head.status == 200 && part_.size() > 0) {
      log_verbose("{}: the server has another version, or no ranges: from the start", wanted_.url);
      part_.clear();
    }
    const int64_t said = head.status == 206 ? head.of : head.length;
    if (wanted_.size >= 0 && said >= 0 && said != wanted_.size) {
      problem_ = Error(Exit::input, fmt::format("{}: has {} bytes, {} wanted", wanted_.url, said, wanted_.size));
      return false;
    }
    if (said >= 0) all_ = said;
    if (head.status == 200 && said < 0) all_ = wanted_.size;
    if (head.type == "text/html" && !checked()) {
      problem_ = Error(Exit::input, fmt::format("{}: is a web page, not a file", wanted_.url));
      return false;
    }
    if (sha256_.empty() && wanted_.git_blob.empty()) sha256_ = head.linked_etag;
    // A weak validator can't promise equal bytes.
    validator_ = head.etag.empty() || head.etag.starts_with("W/") ? head.modified : head.etag;
    return has_room();
  }

  bool has_room() {
    std::error_code error;
    const std::filesystem::path folder = part_.path().parent_path();
    const auto space = std::filesystem::space(folder.empty() ? "." : folder, error);
    if (error || all_ < 0 || int64_t(space.available) >= all_ - part_.size()) return true;
    problem_ = Error(Exit::failed, fmt::format("{}: {} MB are free, {} MB needed", folder.string(),
                                               space.available / 1'000'000, (all_ - part_.size()) / 1'000'000 + 1));
    return false;
  }

  bool put(std::string_view bytes) {
    if (all_ >= 0 && part_.size() + int64_t(bytes.size()) > all_) {
      problem_ = Error(Exit::input, fmt::format("{}: more than the {} bytes it should have", wanted_.url, all_));
      return false;
    }
    if (!part_.append(bytes)) {
      problem_ = Error(Exit::failed, fmt::format("{}: can't be written: {}", part_.path().string(), part_.error()));
      return false;
    }
    if (transfer_.progress) transfer_.progress(part_.size(), all_);
    return true;
  }

  // Until all bytes are there.
  void receive() {
    int64_t mark = part_.size();
    for (int attempt = 0;; ++attempt) {
      check_going_on(transfer_);
      if (all_ > 0 && part_.size() == all_) return;
      if (all_ > 0 && part_.size() > all_) part_.clear();
      Get request{wanted_.url, part_.size(), validator_, {}, {}};
      request.on_head = guard([this](const Head& head) {
        const bool good = begin(head);
        if (good) part_.write_note({wanted_.url, validator_, all_});
        return good;
      });
      request.on_body = [this](std::string_view bytes) { return put(bytes); };
      Outcome outcome = get(request, transfer_);
      if (problem_) throw *problem_;
      check_going_on(transfer_);
      if (outcome.head.status == 416) {  // what is here is as long as the file, or longer
        if (outcome.head.of != part_.size()) part_.clear();
        if (outcome.head.of == part_.size() && part_.size() > 0) return;
        outcome.again = true;
      }
      if (outcome.error.empty()) {
        if (all_ < 0 || part_.size() == all_) return;
        outcome.error = fmt::format("the connection ended after {} of {} bytes", part_.size(), all_);
        outcome.again = true;
      }
      if (!outcome.again) give_up(wanted_.url, outcome);
      if (part_.size() >= mark + progress_bytes) attempt = 0;
      mark = std::max(mark, part_.size());
      if (attempt >= transfer_.retries) {
        outcome.error += fmt::format("; gave up after {} tries", attempt + 1);
        give_up(wanted_.url, outcome);
      }
      wait_before_retry(attempt, outcome.head.retry_after, wanted_.url + ": " + outcome.error, transfer_);
    }
  }

  // Exceptions must not pass through a C library: they become the problem.
  std::function<bool(const Head&)> guard(std::function<bool(const Head&)> body) {
    return [this, body = std::move(body)](const Head& head) {
      try {
        return body(head);
      } catch (const Error& error) {
        problem_ = error;
        return false;
      }
    };
  }

  // What is wrong with the whole file; empty: nothing.
  std::string compare() {
    const auto going_on = [this] {
      return !transfer_.deadline.passed() && !(transfer_.cancelled && transfer_.cancelled());
    };
    if (part_.size() == 0 && wanted_.size != 0) return "is empty";
    digest_ = digest_of(part_.path(), Digest::sha256, going_on);
    if (digest_.empty()) check_going_on(transfer_);
    if (!sha256_.empty() && digest_ != sha256_) return fmt::format("its SHA-256 is {}, {} wanted", digest_, sha256_);
    if (wanted_.git_blob.empty()) return "";
    const std::string blob = digest_of(part_.path(), Digest::git_blob);
    return blob == wanted_.git_blob ? "" : fmt::format("its Git blob is {}, {} wanted", blob, wanted_.git_blob);
  }

  const Wanted& wanted_;
  const Transfer& transfer_;
  PartFile part_;
  std::string sha256_, digest_, validator_;
  int64_t all_;
  std::optional<Error> problem_;
};

}  // namespace

std::string download(const Wanted& wanted, const Transfer& transfer) { return Download(wanted, transfer)(); }

Answer fetch_text(const std::string& url, const Transfer& transfer) {
  constexpr size_t most = size_t{16} << 20;
  for (int attempt = 0;; ++attempt) {
    check_going_on(transfer);
    Answer answer;
    Get request;
    request.url = url;
    request.on_body = [&](std::string_view bytes) {
      answer.body += bytes;
      return answer.body.size() <= most;
    };
    Outcome outcome = get(request, transfer);
    check_going_on(transfer);
    if (answer.body.size() > most) bad_input("{}: the answer is longer than {} bytes", url, most);
    answer.next = outcome.head.next;
    if (outcome.error.empty()) return answer;
    if (!outcome.again || attempt >= transfer.retries) give_up(url, outcome);
    wait_before_retry(attempt, outcome.head.retry_after, url + ": " + outcome.error, transfer);
  }
}

std::string escape_path(std::string_view path) {
  std::string result;
  for (const char c : path) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("-._~/").find(c) != std::string_view::npos;
    result += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return result;
}

}  // namespace consonant
