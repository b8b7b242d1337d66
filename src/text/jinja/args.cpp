// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/args.hpp"

#include <algorithm>

namespace consonant::jinja {

Bound::Bound(std::string_view function, std::string_view signature, const Args& args) : all(args), function_(function) {
  if (signature == "*") return;
  std::vector<std::string_view> names;
  bool by_name = true;
  for (size_t at = 0; at < signature.size();) {
    const size_t end = std::min(signature.find(' ', at), signature.size());
    const std::string_view word = signature.substr(at, end - at);
    if (word == "/")
      by_name = false;
    else
      names.push_back(word);
    at = end + 1;
  }
  if (args.positional.size() > names.size())
    fail(Fault::type, "{}() takes at most {} argument(s), {} given", function, names.size(), args.positional.size());
  values_ = args.positional;
  values_.resize(names.size());
  const auto plain = [](std::string_view name) { return name.substr(0, name.size() - (name.back() == '!' ? 1 : 0)); };
  for (const auto& given : args.named) {
    const std::string& name = given.first;
    const auto it = std::find_if(names.begin(), names.end(), [&](std::string_view n) { return plain(n) == name; });
    if (!by_name || it == names.end()) fail(Fault::type, "{}() takes no argument named '{}'", function, name);
    Value& place = values_[static_cast<size_t>(it - names.begin())];
    if (!place.is(Kind::missing)) fail(Fault::type, "{}() got two values for its argument '{}'", function, name);
    place = given.second;
  }
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i].back() == '!' && values_[i].is(Kind::missing))
      fail(Fault::type, "{}() needs its argument '{}'", function, plain(names[i]));
}

int64_t to_index(const Value& v) {
  if (v.is_integral()) return v.integer;
  if (v.is(Kind::undefined)) fail_undefined(v);
  fail(Fault::type, "'{}' object cannot be interpreted as an integer", type_name(v));
}

int64_t Bound::integer(size_t i, int64_t otherwise) const { return has(i) ? to_index(values_[i]) : otherwise; }

const std::string& Bound::text(size_t i) const {
  if (!has(i) || !values_[i].is(Kind::string))
    fail(Fault::type, "{}() needs a string, not {}", function_, has(i) ? type_name(values_[i]) : "nothing");
  return text_of(values_[i]);
}

}  // namespace consonant::jinja
