// SPDX-License-Identifier: Apache-2.0
#include "formats/json.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace consonant {

namespace {

constexpr size_t max_depth = 64;

// Builds the document; unlike the library's own builder it refuses a key that stands twice in one object.
class Builder : public nlohmann::json_sax<Json> {
 public:
  Builder(std::string_view text, std::string_view source) : text_(text), source_(source) {}

  Json take() { return std::move(root_); }

  bool null() override { return put(nullptr); }
  bool boolean(bool x) override { return put(x); }
  bool number_integer(number_integer_t x) override { return put(x); }
  bool number_unsigned(number_unsigned_t x) override { return put(x); }
  bool number_float(number_float_t x, const string_t&) override { return put(x); }
  bool string(string_t& x) override { return put(std::move(x)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return open(Json::object()); }
  bool start_array(size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    const auto [at, added] = stack_.back()->emplace(name, nullptr);
    if (!added) bad_input("{}: the key \"{}\" stands twice in one object", source_, name);
    slot_ = &*at;
    return true;
  }

  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    const std::string_view before = text_.substr(0, std::min(position, text_.size()));
    // The library's message begins with its own name and number, up to the first "]".
    const std::string_view what = error.what();
    const size_t bracket = what.find("] ");
    bad_input("{}: line {}: not JSON: {}", source_, 1 + std::count(before.begin(), before.end(), '\n'),
              bracket == what.npos ? what : what.substr(bracket + 2));
  }

 private:
  template <class T>
  Json* place(T&& x) {
    if (stack_.empty()) {
      root_ = std::forward<T>(x);
      return &root_;
    }
    if (stack_.back()->is_array()) {
      stack_.back()->push_back(std::forward<T>(x));
      return &stack_.back()->back();
    }
    *slot_ = std::forward<T>(x);
    return slot_;
  }

  template <class T>
  bool put(T&& x) {
    place(std::forward<T>(x));
    return true;
  }

  bool open(Json container) {
    if (stack_.size() >= max_depth) bad_input("{}: nested deeper than {}", source_, max_depth);
    stack_.push_back(place(std::move(container)));
    return true;
  }

  bool close() {
    stack_.pop_back();
    return true;
  }

  std::string_view text_, source_;
  Json root_;
  Json* slot_ = nullptr;  // of the key read last
  std::vector<Json*> stack_;
};

}  // namespace

Json parse_json(std::string_view text, std::string_view source) {
  Builder builder(text, source);
  Json::sax_parse(text.begin(), text.end(), &builder);
  return builder.take();
}

}  // namespace consonant
