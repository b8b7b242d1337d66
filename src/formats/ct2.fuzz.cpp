// SPDX-License-Identifier: Apache-2.0
// A model.bin of any bytes is read, with every tensor loadable, or refused as bad input; anything else is a fault.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "base/error.hpp"
#include "formats/ct2.hpp"
#include "formats/whisper/tensors.hpp"

using namespace consonant;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  try {
    const auto file = MappedFile::of_bytes("model.bin", {bytes, bytes + size});
    static_cast<void>(is_ct2(*file));
    const auto ct2 = std::make_shared<const Ct2File>(parse_ct2(file));
    WhisperSizes sizes;
    const ModelFile model = read_ct2_whisper(ct2, sizes);
    for (const StoredTensor& t : model.tensors) {
      const HostTensor loaded = t.load();
      if (loaded.type != t.type || loaded.sizes != t.sizes) std::abort();
      if (loaded.to_floats().size() != static_cast<size_t>(element_count(t.sizes))) std::abort();
    }
  } catch (const Error& error) {
    if (error.exit() != Exit::input) std::abort();
  }
  return 0;
}
