// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace consonant {

// The bytes of a sound file, read from front to back. A stream can go back to its start only while it keeps what was
// read, that is until `forget`.
class ByteSource {
 public:
  explicit ByteSource(std::string name) : name_(std::move(name)) {}
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;
  virtual ~ByteSource() = default;

  virtual int64_t read(std::span<std::byte> to) = 0;  // fewer than asked for only at the end
  virtual int64_t size() const = 0;                   // -1: unknown
  virtual int64_t position() const = 0;
  virtual bool seekable() const = 0;
  virtual void seek(int64_t offset) = 0;  // of what is seekable
  virtual void rewind() = 0;
  virtual void forget() = 0;
  virtual int descriptor() const { return -1; }  // of a file on disk

  void skip(int64_t bytes);  // stops at the end
  const std::string& name() const { return name_; }

 private:
  std::string name_;
};

// A regular file is seekable, anything else that can be opened is a stream. Bad input with the reason for the rest.
std::unique_ptr<ByteSource> open_bytes(const std::string& path);

// The same from a descriptor, which isn't closed. A regular file read from its middle counts as a stream.
std::unique_ptr<ByteSource> bytes_of_descriptor(int descriptor, std::string name);

// The source takes the descriptor over.
std::unique_ptr<ByteSource> bytes_of_file(int descriptor, std::string name);

std::unique_ptr<ByteSource> bytes_of_memory(std::vector<std::byte> bytes, std::string name);

// A stream of what `read` gives: fewer bytes than asked for at any time, 0 at the end.
std::unique_ptr<ByteSource> bytes_of_stream(std::function<int64_t(std::span<std::byte>)> read, std::string name);

// Reads `source` to its end into a temporary file that has no name, for readers that must seek.
std::unique_ptr<ByteSource> spool(ByteSource& source);

}  // namespace consonant
