// SPDX-License-Identifier: Apache-2.0
#pragma once

// Pointers that know the memory they point into. `Space` is what the memory belongs to: its read and write are called
// before each access.
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace consonant::GPU_BUILD::gpu {

// Throws: `bytes` at `at` aren't all between `begin` and `end`, or aren't aligned, or it's a null pointer.
[[noreturn]] void bad_access(uintptr_t at, int64_t bytes, int64_t alignment, uintptr_t begin, uintptr_t end,
                             const char* name);

template <class T, class Space>
class Ref;

template <class T, class Space>
class Pointer {
 public:
  using Element = T;

  Pointer() = default;
  Pointer(std::nullptr_t) {}
  Pointer(uintptr_t at, uintptr_t begin, uintptr_t end, const Space* space)
      : at_(at), begin_(begin), end_(end), space_(space) {}
  template <class U>
  requires(std::is_same_v<T, const U>) Pointer(const Pointer<U, Space>& p)
      : Pointer(p.at(), p.begin(), p.end(), p.space()) {}

  uintptr_t at() const { return at_; }
  uintptr_t begin() const { return begin_; }
  uintptr_t end() const { return end_; }
  const Space* space() const { return space_; }

  // The element, to read or to write.
  T* element(int64_t i, int64_t bytes = sizeof(T), int64_t alignment = alignof(T)) const {
    const uintptr_t at = at_ + static_cast<uintptr_t>(i) * sizeof(T);
    if (at < begin_ || at > end_ || end_ - at < static_cast<uintptr_t>(bytes) ||
        at % static_cast<uintptr_t>(alignment) != 0)
      bad_access(at, bytes, alignment, begin_, end_, space_ ? space_->name : "an empty tensor");
    return reinterpret_cast<T*>(at);
  }

  decltype(auto) operator[](int64_t i) const {
    T* const p = element(i);
    if constexpr (std::is_const_v<T>) {
      space_->read(reinterpret_cast<uintptr_t>(p), sizeof(T));
      return std::remove_const_t<T>(*p);
    } else {
      return Ref<T, Space>(p, space_);
    }
  }
  decltype(auto) operator*() const { return (*this)[0]; }

  Pointer& operator+=(int64_t n) {
    at_ += static_cast<uintptr_t>(n) * sizeof(T);
    return *this;
  }
  Pointer& operator-=(int64_t n) { return *this += -n; }
  Pointer& operator++() { return *this += 1; }
  Pointer& operator--() { return *this -= 1; }
  Pointer operator++(int) {
    const Pointer old = *this;
    *this += 1;
    return old;
  }
  Pointer operator--(int) {
    const Pointer old = *this;
    *this -= 1;
    return old;
  }
  friend Pointer operator+(Pointer p, int64_t n) { return p += n; }
  friend Pointer operator+(int64_t n, Pointer p) { return p += n; }
  friend Pointer operator-(Pointer p, int64_t n) { return p -= n; }
  friend int64_t operator-(const Pointer& a, const Pointer& b) {
    return static_cast<int64_t>(a.at_ - b.at_) / static_cast<int64_t>(sizeof(T));
  }
  friend bool operator==(const Pointer& a, const Pointer& b) { return a.at_ == b.at_; }
  friend auto operator<=>(const Pointer& a, const Pointer& b) { return a.at_ <=> b.at_; }
  explicit operator bool() const { return at_ != 0; }

 private:
  uintptr_t at_ = 0, begin_ = 0, end_ = 0;
  const Space* space_ = nullptr;
};

// An element that a kernel may write.
template <class T, class Space>
class Ref {
 public:
  Ref(T* p, const Space* space) : p_(p), space_(space) {}

  operator T() const {
    space_->read(reinterpret_cast<uintptr_t>(p_), sizeof(T));
    return *p_;
  }
  const Ref& operator=(T x) const {
    space_->write(reinterpret_cast<uintptr_t>(p_), sizeof(T));
    *p_ = x;
    return *this;
  }
  const Ref& operator=(const Ref& other) const { return *this = static_cast<T>(other); }
  Ref& operator=(const Ref& other) {
    const Ref& self = *this;
    self = static_cast<T>(other);
    return *this;
  }
  Ref(const Ref&) = default;

#define CONSONANT_ASSIGN(op)                                   \
  template <class U>                                           \
  const Ref& operator op##=(const U& x) const {                \
    return *this = static_cast<T>(static_cast<T>(*this) op x); \
  }
  CONSONANT_ASSIGN(+)
  CONSONANT_ASSIGN(-)
  CONSONANT_ASSIGN(*)
  CONSONANT_ASSIGN(/)
  CONSONANT_ASSIGN(%)
  CONSONANT_ASSIGN(&)
  CONSONANT_ASSIGN(|)
  CONSONANT_ASSIGN(^)
  CONSONANT_ASSIGN(<<)
  CONSONANT_ASSIGN(>>)
#undef CONSONANT_ASSIGN
  const Ref& operator++() const { return *this += 1; }
  const Ref& operator--() const { return *this -= 1; }
  T operator++(int) const {
    const T old = *this;
    *this += 1;
    return old;
  }
  T operator--(int) const {
    const T old = *this;
    *this -= 1;
    return old;
  }
  void operator&() const = delete;  // p + i is the address of p[i]

 private:
  T* p_;
  const Space* space_;
};

// What a value of type T is when it is read.
template <class T>
struct ValueOf {
  using type = T;
};
template <class T, class Space>
struct ValueOf<Ref<T, Space>> {
  using type = T;
};

}  // namespace consonant::GPU_BUILD::gpu
