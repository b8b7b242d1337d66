// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/local_time.hpp"

#include <charconv>
#include <ctime>

#include "base/error.hpp"
#include "text/jinja/failure.hpp"

namespace consonant {

LocalTime LocalTime::now() {
  const std::time_t seconds = std::time(nullptr);
  std::tm t{};
  if (!localtime_r(&seconds, &t)) throw_error(Exit::failed, "the local time can't be found");
  return {t.tm_year + 1900, t.tm_mon + 1, t.tm_mday, t.tm_hour, t.tm_min, t.tm_sec};
}

namespace {

int days_of(int year, int month) {
  static constexpr int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  return month == 2 && leap ? 29 : days[month - 1];
}

// From Sunday, by the Gregorian calendar.
int day_of_week(int year, int month, int day) {
  static constexpr int offset[] = {0, 3, 2, 5, 0, 3, 5, 1, 4, 6, 2, 4};
  const int y = month < 3 ? year - 1 : year;
  return (y + y / 4 - y / 100 + y / 400 + offset[month - 1] + day) % 7;
}

std::tm to_tm(const LocalTime& time) {
  std::tm t{};
  t.tm_year = time.year - 1900;
  t.tm_mon = time.month - 1;
  t.tm_mday = time.day;
  t.tm_hour = time.hour;
  t.tm_min = time.minute;
  t.tm_sec = time.second;
  t.tm_wday = day_of_week(time.year, time.month, time.day);
  t.tm_yday = time.day - 1;
  for (int m = 1; m < time.month; ++m) t.tm_yday += days_of(time.year, m);
  t.tm_isdst = -1;
  return t;
}

}  // namespace

LocalTime LocalTime::parse(std::string_view iso) {
  LocalTime t;
  size_t at = 0;
  const auto number = [&](size_t digits, int low, int high) {
    int value = 0;
    const std::string_view part = iso.substr(std::min(at, iso.size()), digits);
    const auto result = std::from_chars(part.data(), part.data() + part.size(), value);
    if (part.size() != digits || part[0] == '-' || result.ec != std::errc() || result.ptr != part.data() + digits ||
        value < low || value > high)
      bad_usage("'{}' is no time: wanted YYYY-MM-DD or YYYY-MM-DDThh:mm:ss", iso);
    at += digits;
    return value;
  };
  const auto sign = [&](std::string_view allowed) {
    if (at >= iso.size() || allowed.find(iso[at]) == std::string_view::npos)
      bad_usage("'{}' is no time: wanted YYYY-MM-DD or YYYY-MM-DDThh:mm:ss", iso);
    ++at;
  };
  t.year = number(4, 1, 9999);
  sign("-");
  t.month = number(2, 1, 12);
  sign("-");
  t.day = number(2, 1, days_of(t.year, t.month));
  if (at == iso.size()) return t;
  sign("T ");
  t.hour = number(2, 0, 23);
  sign(":");
  t.minute = number(2, 0, 59);
  sign(":");
  t.second = number(2, 0, 59);
  if (at != iso.size()) bad_usage("'{}' is no time: wanted YYYY-MM-DD or YYYY-MM-DDThh:mm:ss", iso);
  return t;
}

// One code at a time: what Python does itself (%f, and %z and %Z, which are empty without a time zone) and what it
// leaves to the C library.
std::string LocalTime::format(const std::string& format) const {
  const std::tm t = to_tm(*this);
  std::string out;
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') {
      out.push_back(format[i]);
      continue;
    }
    std::string code = "%";
    while (i + 1 < format.size() && std::string_view("-_0^#").find(format[i + 1]) != std::string_view::npos)
      code.push_back(format[++i]);
    if (i + 1 == format.size()) {
      out += code;
      break;
    }
    const char c = format[++i];
    if (c == 'f') {
      out += "000000";
    } else if (c == '%') {
      out.push_back('%');
    } else if (std::string_view("aAbBcCdDeFgGhHIjklmMnpPrRStTuUVwWxXyY").find(c) != std::string_view::npos) {
      char buffer[128];
      code.push_back(c);
      // A blank in front tells an empty result from one that doesn't fit.
      out.append(buffer + 1, std::strftime(buffer, sizeof buffer, (" " + code).c_str(), &t) - 1);
    } else if (c != 'z' && c != 'Z') {
      jinja::fail(jinja::Fault::value, "strftime_now() doesn't know %{}", c);
    }
  }
  return out;
}

}  // namespace consonant
