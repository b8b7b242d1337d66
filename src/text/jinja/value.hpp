// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "text/jinja/failure.hpp"

namespace consonant::jinja {

enum class Kind : uint8_t {
  missing,  // not a value: an unset variable, an argument that wasn't given
  undefined,
  none,
  boolean,
  integer,
  real,
  string,
  list,
  tuple,
  dict,
  view,  // of a dict: keys(), values(), items()
  range,
  generator,  // anything that can be walked once
  space,      // namespace()
  macro,
  function,  // of ours, or a method bound to its value
  loop,
  cycler,
  joiner,
};

class Heap;

// Anything that lives on the heap of one rendering. The count isn't atomic: a rendering stays on its thread.
class Object {
 public:
  Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  virtual ~Object();

  // Drops what this object refers to. Only objects that can be changed after they were made can lie on a cycle; the
  // heap knows these and empties them at the end.
  virtual void drop() {}

  uint32_t refs = 0;
  int depth = 1;       // levels of values inside, itself included
  size_t charged = 0;  // bytes taken from the heap's budget
  Heap* heap = nullptr;
};

template <class T>
class Ref {
 public:
  Ref() = default;
  explicit Ref(T* p) : p_(p) { take(); }
  Ref(const Ref& o) : p_(o.p_) { take(); }
  Ref(Ref&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  template <class U>
  Ref(const Ref<U>& o) : p_(o.get()) {
    take();
  }
  ~Ref() { leave(); }
  Ref& operator=(Ref o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  T* get() const { return p_; }
  T* operator->() const { return p_; }
  T& operator*() const { return *p_; }
  explicit operator bool() const { return p_ != nullptr; }

 private:
  void take() {
    if (p_) ++p_->refs;
  }
  void leave() {
    if (p_ && --p_->refs == 0) delete p_;
  }
  T* p_ = nullptr;
};

class Value {
 public:
  Value() = default;
  Value(Kind kind, Ref<Object> object) : kind(kind), object(std::move(object)) {}
  static Value none() { return Value(Kind::none, {}); }
  static Value of(bool b) {
    Value v(Kind::boolean, {});
    v.integer = b;
    return v;
  }
  static Value of(int64_t i) {
    Value v(Kind::integer, {});
    v.integer = i;
    return v;
  }
  static Value of(double d) {
    Value v(Kind::real, {});
    v.real = d;
    return v;
  }
  static Value of(int) = delete;

  bool is(Kind k) const { return kind == k; }
  bool is_sequence() const { return kind == Kind::list || kind == Kind::tuple; }
  bool is_integral() const { return kind == Kind::integer || kind == Kind::boolean; }
  bool is_number() const { return is_integral() || kind == Kind::real; }
  double as_real() const { return kind == Kind::real ? real : static_cast<double>(integer); }
  template <class T>
  T& as() const {
    return static_cast<T&>(*object);
  }

  Kind kind = Kind::missing;
  union {
    int64_t integer = 0;  // also of a boolean
    double real;
  };
  Ref<Object> object;
};

struct String : Object {
  String(std::string t, bool m) : text(std::move(t)), markup(m) {}
  const std::string text;
  const bool markup;            // jinja2's Markup: joined with plain text, it escapes that
  mutable int64_t length = -1;  // in code points, once asked for
};

struct Undefined : Object {
  explicit Undefined(std::string m, Fault f = Fault::undefined) : message(std::move(m)), fault(f) {}
  const std::string message;
  const Fault fault;
};

struct List : Object {  // and a tuple
  explicit List(std::vector<Value> v, bool g = false) : items(std::move(v)), group(g) {}
  const std::vector<Value> items;
  const bool group;  // a tuple that `groupby` made: .grouper, .list
};

struct ValueHash {
  size_t operator()(const Value& v) const;  // fails for what Python can't hash
};
struct ValueEqual {
  bool operator()(const Value& a, const Value& b) const;
};

struct Dict : Object {
  const Value* find(const Value& key) const;
  const Value* find(std::string_view key) const;
  void set(const Value& key, const Value& value);
  void drop() override;

  std::vector<std::pair<Value, Value>> items;

 private:
  std::unordered_map<Value, size_t, ValueHash, ValueEqual> index_;  // only when there are many
};

struct View : Object {
  enum class Of { keys, values, items };
  View(Ref<Dict> d, Of o) : dict(std::move(d)), of(o) {}
  const Ref<Dict> dict;
  const Of of;
};

struct Range : Object {
  Range(int64_t a, int64_t b, int64_t s) : start(a), stop(b), step(s) {}
  int64_t size() const;
  int64_t at(int64_t i) const { return start + i * step; }
  const int64_t start, stop, step;
};

// What `for`, `map`, `select` and the like walk. Value of kind `generator`.
struct Iterator : Object {
  virtual bool next(Value& item) = 0;  // false at the end, whatever `item` holds then
  const char* type = "generator";
};

struct Space : Object {  // namespace(): the one thing that a template can change
  explicit Space(Ref<Dict> a) : attributes(std::move(a)) {}
  void drop() override { attributes->drop(); }
  const Ref<Dict> attributes;
};

struct Cycler : Object {
  std::vector<Value> items;
  size_t at = 0;
};

struct Joiner : Object {
  Value separator;
  bool used = false;
};

// The memory of one rendering: makes objects, counts their bytes and the steps taken, and refuses at the limits.
class Heap {
 public:
  explicit Heap(const Limits& limits) : limits(limits) {}
  Heap(const Heap&) = delete;
  ~Heap();

  template <class T, class... Args>
  Ref<T> make(size_t extra, Args&&... args) {
    charge(sizeof(T) + extra);
    Ref<T> r(new T(std::forward<Args>(args)...));
    r->heap = this;
    r->charged = sizeof(T) + extra;
    return r;
  }
  Value string(std::string text, bool markup = false);
  Value list(std::vector<Value> items) { return sequence(Kind::list, std::move(items), false); }
  Value tuple(std::vector<Value> items, bool group = false) { return sequence(Kind::tuple, std::move(items), group); }
  Ref<Dict> dict();
  Value undefined(std::string message, Fault fault = Fault::undefined);
  Value from_json(const nlohmann::ordered_json& json);

  // A change of a dict that is being built, or of a namespace.
  void set(Dict& dict, const Value& key, const Value& value);
  // `object` holds `value` from now on: the depth of the tree of values is bounded, since its walks recurse.
  void hold(Object& object, const Value& value);
  // To be emptied at the end, since it may lie on a cycle.
  void keep(Ref<Object> object) { kept_.push_back(std::move(object)); }

  void spend(int64_t steps) {
    if ((steps_ += steps) > limits.steps) fail(Fault::limit, "the template takes more than {} steps", limits.steps);
  }
  void spend_bytes(size_t bytes) { spend(static_cast<int64_t>(bytes >> 7)); }
  // Before a string of this many bytes is made.
  void check_string(size_t bytes) const {
    if (bytes > limits.output) fail(Fault::limit, "a string longer than {} bytes", limits.output);
  }
  void charge(size_t bytes);
  void give_back(size_t bytes) { used_ -= bytes; }

  const Limits limits;

 private:
  Value sequence(Kind kind, std::vector<Value> items, bool group);
  std::vector<Ref<Object>> kept_;
  size_t used_ = 0;
  int64_t steps_ = 0;
};

const std::string& text_of(const Value& v);  // of a string
bool truth(const Value& v);
bool equal(const Value& a, const Value& b);
bool identical(const Value& a, const Value& b);                     // Python's `is`
bool less(const Value& a, const Value& b);                          // a < b, or a type error
bool compare(const Value& a, const Value& b, std::string_view op);  // < <= > >=
const char* type_name(const Value& v);                              // as Python names it
[[noreturn]] void fail_undefined(const Value& v);
Value none_if_missing(const Value& v);

// The number of items or characters; a type error for what has none.
int64_t length_of(const Value& v);

// Walks anything Python can walk; a type error for the rest.
Ref<Iterator> iterate(Heap& heap, const Value& v);
bool can_iterate(const Value& v);
std::vector<Value> to_vector(Heap& heap, const Value& v);
// The items from the last to the first; a type error for what can't be reversed.
std::vector<Value> reversed(Heap& heap, const Value& v);
Ref<Iterator> iterate_items(Heap& heap, std::vector<Value> items, const char* type);

inline Value value_of(Ref<Iterator> it) { return Value(Kind::generator, Ref<Object>(std::move(it))); }
inline Value value_of(Ref<Dict> dict) { return Value(Kind::dict, Ref<Object>(std::move(dict))); }

}  // namespace consonant::jinja
