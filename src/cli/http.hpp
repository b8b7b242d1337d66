// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <curl/curl.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "cli/download.hpp"

namespace consonant {

// What the last answer of a chain of redirects said.
struct Head {
  long status = 0;
  int64_t length = -1;         // of the body
  int64_t from = -1, of = -1;  // Content-Range
  std::string etag, modified;  // validators
  std::string type, next;      // media type; rel="next" link
  std::string linked_etag;     // of any answer of the chain: a hub's SHA-256 of the file behind it
  double retry_after = 0;
};

// One GET that follows redirects. `on_body` is called with the pieces of a body whose status is 200 or 206; false
// stops.
struct Get {
  std::string url;
  int64_t from = 0;       // Range: bytes=from-
  std::string validator;  // If-Range
  std::function<bool(const Head&)> on_head;
  std::function<bool(std::string_view)> on_body;
};

// How it went: `again` tells whether another try may help. An empty `error` means success.
struct Outcome {
  Head head;
  std::string error;
  bool again = false, denied = false, aborted = false;
};
Outcome get(const Get& request, const Transfer& transfer);

// Waits before the next try, unless it is cancelled or the deadline passes: throws then.
void wait_before_retry(int attempt, double retry_after, const std::string& error, const Transfer& transfer);
void check_going_on(const Transfer& transfer);

}  // namespace consonant
