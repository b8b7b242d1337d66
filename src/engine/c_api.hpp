// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstring>
#include <exception>
#include <span>

#include "base/error.hpp"
#include "consonant/consonant.h"
#include "consonant/engine.hpp"

// What the functions of the C interface share.
namespace consonant {

// Keeps `what` for consonant_last_error of this thread; returns `code`.
int c_api_fail(int code, const char* what) noexcept;

// Runs `body`; no exception leaves.
template <class Body>
int guarded(Body body) noexcept {
  try {
    body();
    return 0;
  } catch (const std::exception& error) {
    return c_api_fail(exit_code(error), error.what());
  } catch (...) {
    return c_api_fail(int(Exit::failed), "an unknown error");
  }
}

inline void need(const void* pointer, const char* what) {
  if (!pointer) bad_usage("{} is NULL", what);
}

// A struct of a caller that was compiled against this header or an older one: what it lacks keeps its default.
template <class Options>
Options complete(const Options* given, void (*init)(Options*)) {
  Options options;
  init(&options);
  if (!given) return options;
  if (given->size < sizeof given->size || given->size > sizeof options)
    bad_usage("options of {} bytes, but this library knows {}: initialise them with their _init function", given->size,
              sizeof options);
  const size_t size = given->size;
  std::memcpy(static_cast<void*>(&options), given, size);
  options.size = sizeof options;
  return options;
}

template <class T>
void copy_out(std::span<const T> from, T* to, size_t capacity, size_t* count) {
  need(count, "count");
  if (capacity > 0) need(to, "the output");
  std::copy_n(from.begin(), std::min(from.size(), capacity), to);
  *count = from.size();
}

EngineOptions from_c(const consonant_engine_options* options);  // may be null

}  // namespace consonant
