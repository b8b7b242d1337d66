// SPDX-License-Identifier: Apache-2.0
// A file of whisper.cpp of any bytes is read, with every tensor loadable, or refused as bad input; anything else is a
// fault.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "base/error.hpp"
#include "formats/ggml.hpp"

using namespace consonant;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  try {
    const GgmlFile ggml = parse_ggml(MappedFile::of_bytes("ggml-x.bin", {bytes, bytes + size}));
    // Small inputs have no published vocabulary, so the tensors are looked at before that is asked for.
    for (const StoredTensor& t : whisper_tensors(ggml.sizes, ggml.parts, "ggml-x.bin",
                                                 [](std::string_view gguf) { return std::string(gguf); })) {
      const HostTensor loaded = t.load();
      if (loaded.type != t.type || loaded.sizes != t.sizes) std::abort();
      if (loaded.to_floats().size() != static_cast<size_t>(element_count(t.sizes))) std::abort();
    }
    read_ggml(ggml);
  } catch (const Error& error) {
    if (error.exit() != Exit::input) std::abort();
  }
  return 0;
}
