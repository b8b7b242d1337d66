// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace consonant {

// The place in the source that made something: a graph node, mostly. `std::source_location` by hand, since
// clang 14 with libstdc++ 12 lacks it.
struct Location {
  const char* file = "";
  int line = 0;

  static constexpr Location current(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }

  // The file's name without its folders.
  constexpr const char* file_name() const {
    const char* name = file;
    for (const char* p = file; *p; ++p)
      if (*p == '/') name = p + 1;
    return name;
  }
};

}  // namespace consonant
