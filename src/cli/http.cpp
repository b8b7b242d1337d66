// SPDX-License-Identifier: Apache-2.0
#include "cli/http.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <mutex>
#include <thread>

#include "base/error.hpp"
#include "base/log.hpp"
#include "engine/version.hpp"

namespace consonant {
namespace {

struct State {
  const Get& request;
  const Transfer& transfer;
  CURL* handle;
  Head head;
  bool body_begun = false, refused = false, stopped = false;
};

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
  return result;
}

std::string_view trim(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  return first == text.npos ? "" : text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

int64_t number(std::string_view text) {
  int64_t value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value >= 0 ? value : -1;
}

// bytes FROM-TO/ALL or bytes */ALL
void read_range(std::string_view value, Head& head) {
  if (!value.starts_with("bytes ")) return;
  value.remove_prefix(6);
  const size_t dash = value.find('-'), slash = value.find('/');
  if (slash == value.npos) return;
  head.of = number(value.substr(slash + 1));
  if (dash != value.npos) head.from = number(value.substr(0, dash));
}

// <URL>; rel="next"
std::string next_link(std::string_view value) {
  for (size_t open; (open = value.find('<')) != value.npos;) {
    const size_t close = value.find('>', open), comma = std::min(value.find(',', close), value.size());
    if (close == value.npos) break;
    if (value.substr(close, comma - close).find("rel=\"next\"") != value.npos)
      return std::string(value.substr(open + 1, close - open - 1));
    value.remove_prefix(comma);
  }
  return "";
}

size_t on_header(char* data, size_t, size_t size, void* user) {
  State& state = *static_cast<State*>(user);
  const std::string_view line(data, size);
  Head& head = state.head;
  if (line.starts_with("HTTP/")) {  // of the next answer in the chain
    const std::string linked = head.linked_etag;
    head = {};
    head.linked_etag = linked;
    return size;
  }
  const size_t colon = line.find(':');
  if (colon == line.npos) return size;
  const std::string name = lower(line.substr(0, colon));
  const std::string_view value = trim(line.substr(colon + 1));
  if (name == "content-length") head.length = number(value);
  if (name == "content-range") read_range(value, head);
  if (name == "content-type") head.type = lower(value.substr(0, value.find(';')));
  if (name == "etag") head.etag = value;
  if (name == "last-modified") head.modified = value;
  if (name == "retry-after") head.retry_after = double(std::max<int64_t>(number(value), 0));
  if (name == "link") head.next = next_link(value);
  if (name == "x-linked-etag" && value.size() == 66) head.linked_etag = lower(value.substr(1, 64));
  return size;
}

size_t on_body(char* data, size_t, size_t size, void* user) {
  State& state = *static_cast<State*>(user);
  curl_easy_getinfo(state.handle, CURLINFO_RESPONSE_CODE, &state.head.status);
  if (state.head.status != 200 && state.head.status != 206) return size;  // the page of an error
  if (!state.body_begun) {
    state.body_begun = true;
    if (state.request.on_head && !state.request.on_head(state.head)) {
      state.refused = true;
      return 0;
    }
  }
  if (state.request.on_body(std::string_view(data, size))) return size;
  state.refused = true;
  return 0;
}

int on_progress(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  State& state = *static_cast<State*>(user);
  const Transfer& t = state.transfer;
  state.stopped = t.deadline.passed() || (t.cancelled && t.cancelled());
  return state.stopped ? 1 : 0;
}

bool is_loopback(std::string_view url) {
  return url.starts_with("http://127.0.0.1:") || url.starts_with("http://localhost:");
}

void set_up(CURL* handle, State& state, char* error) {
  const Get& request = state.request;
  const Transfer& transfer = state.transfer;
  const bool secure = request.url.starts_with("https://");
  const auto set = [&](CURLoption option, auto value) {
    if (const CURLcode code = curl_easy_setopt(handle, option, value); code != CURLE_OK)
      throw_error(Exit::failed, "libcurl: option {}: {}", int(option), curl_easy_strerror(code));
  };
  set(CURLOPT_URL, request.url.c_str());
  set(CURLOPT_ERRORBUFFER, error);
  set(CURLOPT_USERAGENT, (std::string("consonant/") + version).c_str());
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_REDIR_PROTOCOLS_STR, secure ? "https" : "http,https");
  set(CURLOPT_FOLLOWLOCATION, 1L);
  set(CURLOPT_MAXREDIRS, 10L);
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_CONNECTTIMEOUT, long(std::clamp(std::ceil(transfer.stall), 1.0, 30.0)));
  set(CURLOPT_LOW_SPEED_LIMIT, 1L);
  set(CURLOPT_LOW_SPEED_TIME, long(std::max(std::ceil(transfer.stall), 1.0)));
  set(CURLOPT_HEADERFUNCTION, on_header);
  set(CURLOPT_HEADERDATA, &state);
  set(CURLOPT_WRITEFUNCTION, on_body);
  set(CURLOPT_WRITEDATA, &state);
  set(CURLOPT_NOPROGRESS, 0L);
  set(CURLOPT_XFERINFOFUNCTION, on_progress);
  set(CURLOPT_XFERINFODATA, &state);
  if (!transfer.certificates.empty()) set(CURLOPT_CAINFO, transfer.certificates.c_str());
  if (!transfer.token.empty() && (secure || is_loopback(request.url))) {
    set(CURLOPT_HTTPAUTH, long(CURLAUTH_BEARER));
    set(CURLOPT_XOAUTH2_BEARER, transfer.token.c_str());
  }
}

bool worth_another_try(CURLcode code) {
  switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_PARTIAL_FILE:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
    case CURLE_SSL_CONNECT_ERROR:
      return true;
    default:
      return false;
  }
}

void judge_status(Outcome& outcome) {
  const long status = outcome.head.status;
  if (status == 200 || status == 206) return;
  outcome.error = fmt::format("HTTP status {}", status);
  outcome.again = status >= 500 || status == 408 || status == 429;
  outcome.denied = status == 401 || status == 403;
  if (status == 404 || status == 410) outcome.error += ": there is no such file";
  if (outcome.denied) outcome.error += ": the server wants to know who asks, or forbids it";
}

}  // namespace

Outcome get(const Get& request, const Transfer& transfer) {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
  const std::unique_ptr<CURL, void (*)(CURL*)> handle(curl_easy_init(), curl_easy_cleanup);
  if (!handle) throw std::bad_alloc();
  State state{request, transfer, handle.get(), {}};
  char error[CURL_ERROR_SIZE] = "";
  set_up(handle.get(), state, error);
  curl_slist* lines = nullptr;
  if (request.from > 0) {
    lines = curl_slist_append(lines, fmt::format("Range: bytes={}-", request.from).c_str());
    if (!request.validator.empty()) lines = curl_slist_append(lines, ("If-Range: " + request.validator).c_str());
  }
  const std::unique_ptr<curl_slist, void (*)(curl_slist*)> headers(lines, curl_slist_free_all);
  if (lines) curl_easy_setopt(handle.get(), CURLOPT_HTTPHEADER, lines);
  const CURLcode code = curl_easy_perform(handle.get());
  Outcome outcome;
  curl_easy_getinfo(handle.get(), CURLINFO_RESPONSE_CODE, &state.head.status);
  outcome.head = state.head;
  outcome.aborted = state.stopped || state.refused;
  if (outcome.aborted) return outcome;
  if (code == CURLE_OK) {
    judge_status(outcome);
    if (outcome.error.empty() && !state.body_begun && request.on_head) outcome.aborted = !request.on_head(state.head);
    return outcome;
  }
  outcome.again = worth_another_try(code);
  outcome.error = *error ? error : curl_easy_strerror(code);
  if (code == CURLE_UNSUPPORTED_PROTOCOL)
    outcome.error = "the server sends on from https to an address that isn't: refused";
  return outcome;
}

void check_going_on(const Transfer& transfer) {
  if (transfer.cancelled && transfer.cancelled())
    throw_error(Exit::interrupted, "interrupted; the same command goes on from there");
  if (transfer.deadline.passed()) throw_error(Exit::failed, "the deadline passed; the same command goes on from there");
}

void wait_before_retry(int attempt, double retry_after, const std::string& error, const Transfer& transfer) {
  // Twice as long each time, as what is overloaded won't recover from being asked at once.
  const double seconds = std::min(std::max(0.5 * std::exp2(attempt), std::min(retry_after, 60.0)), 60.0);
  log_warning("{}; trying again in {:.1f} s", error, seconds);
  for (const Clock::time_point begin = Clock::now(); seconds_since(begin) < seconds;) {
    check_going_on(transfer);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

}  // namespace consonant
