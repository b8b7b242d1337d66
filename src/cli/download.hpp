// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "base/clock.hpp"

namespace consonant {

// How transfers are made: the same for all of a command.
struct Transfer {
  double stall = 60;  // seconds without a byte after which a connection counts as dead
  int retries = 5;    // in a row, without a megabyte of progress between them
  Deadline deadline;
  std::string token;         // of a hub, sent to the host of the first URL only
  std::string certificates;  // file of trusted ones; empty: the system's
  std::function<bool()> cancelled;
  std::function<void(int64_t done, int64_t all)> progress;  // all: -1 if unknown
};

struct Wanted {
  std::string url;
  std::filesystem::path target;
  int64_t size = -1;     // bytes; -1: unknown
  std::string sha256;    // empty: what the server says, if it does (X-Linked-Etag)
  std::string git_blob;  // SHA-1 as Git has it
};

// Fetches a file. Until it is whole and checked it lies beside its target as NAME.part; a later call goes on where this
// one ended, if the server still has the same file (Range with If-Range). Returns its SHA-256.
std::string download(const Wanted& wanted, const Transfer& transfer);

// The body of a small answer, and the URL of its rel="next" link.
struct Answer {
  std::string body, next;
};
Answer fetch_text(const std::string& url, const Transfer& transfer);

std::string escape_path(std::string_view path);  // for a URL; slashes stay

}  // namespace consonant
