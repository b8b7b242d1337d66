// SPDX-License-Identifier: Apache-2.0
// A safetensors file of any bytes is read, with every tensor in place, or refused as bad input; anything else is a
// fault.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "base/error.hpp"
#include "formats/safetensors.hpp"

using namespace consonant;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  try {
    const SafetensorsFile file(MappedFile::of_bytes("fuzz.safetensors", {bytes, bytes + size}));
    for (const SafetensorsEntry& entry : file.entries()) {
      const HostTensor tensor = file.tensor(entry.name);
      if (static_cast<int64_t>(tensor.to_floats().size()) != element_count(entry.sizes)) std::abort();
    }
  } catch (const Error& error) {
    if (error.exit() != Exit::input) std::abort();
  }
  return 0;
}
