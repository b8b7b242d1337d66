// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace consonant::jinja {

// What a format says about a number or a text: Python's format language and its printf share the parts.
struct FormatSpec {
  char32_t fill = ' ';
  char align = 0;  // < > = ^, or 0: by the type
  char sign = '-';
  bool alternate = false;
  char group = 0;  // , or _
  int64_t width = 0;
  int precision = -1;
  char type = 0;
};

// Digits with their sign and prefix apart, so that zeros can go between.
struct NumberText {
  std::string sign, digits;
};

NumberText integer_text(int64_t value, const FormatSpec& spec);
NumberText real_text(double value, const FormatSpec& spec);
// Filled up to the width; numbers go to the right, texts to the left, unless the spec says otherwise.
std::string filled(const NumberText& text, const FormatSpec& spec, char otherwise, size_t limit);

}  // namespace consonant::jinja
