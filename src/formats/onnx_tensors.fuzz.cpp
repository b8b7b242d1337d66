// SPDX-License-Identifier: Apache-2.0
// The tensors of an ONNX file of any bytes are read, each as long as it says, or refused as bad input; anything else is
// a fault.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "base/error.hpp"
#include "formats/onnx_tensors.hpp"

using namespace consonant;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  try {
    for (const OnnxTensor& t : read_onnx_tensors(MappedFile::of_bytes("fuzz.onnx", {bytes, bytes + size})))
      if (static_cast<int64_t>(t.tensor.to_floats().size()) != t.tensor.count()) std::abort();
  } catch (const Error& error) {
    if (error.exit() != Exit::input) std::abort();
  }
  return 0;
}
