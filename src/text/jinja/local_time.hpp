// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace consonant {

// A time of the day at the place of the machine, for templates that tell the model the date.
struct LocalTime {
  int year = 1970, month = 1, day = 1, hour = 0, minute = 0, second = 0;

  static LocalTime now();
  // "2026-01-02" or "2026-01-02T03:04:05"; anything else is bad usage.
  static LocalTime parse(std::string_view iso);
  // As Python's datetime.strftime; a code that neither Python nor the C library names is an error of the template.
  std::string format(const std::string& format) const;
};

}  // namespace consonant
