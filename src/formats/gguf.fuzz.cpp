// SPDX-License-Identifier: Apache-2.0
// A GGUF file of any bytes is read, with every tensor decodable, or refused as bad input; anything else is a fault.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "base/error.hpp"
#include "formats/gguf.hpp"
#include "formats/inspect.hpp"

using namespace consonant;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  try {
    GgufFile file = parse_gguf(MappedFile::of_bytes("fuzz.gguf", {bytes, bytes + size}));
    ModelFile model;
    for (const GgufTensor& t : file.tensors) {
      const HostTensor tensor{t.type, t.sizes, file.file->range(t.offset, t.bytes, t.name), file.file};
      if (t.bytes > static_cast<int64_t>(size)) std::abort();
      if (tensor.to_floats().size() != static_cast<size_t>(element_count(t.sizes))) std::abort();
      model.tensors.push_back({t.name, t.type, t.sizes, t.bytes, [tensor] { return tensor; }});
    }
    model.meta = std::make_shared<Meta>(std::move(file.meta));
    describe_model(model, true);
    model_to_json(model, true).dump();
  } catch (const Error& error) {
    if (error.exit() != Exit::input) std::abort();
  }
  return 0;
}
