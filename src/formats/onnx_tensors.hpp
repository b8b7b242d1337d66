// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "formats/mapped_file.hpp"
#include "tensor/host_tensor.hpp"

namespace consonant {

// A float tensor that an ONNX graph holds: an initializer, or the value of a Constant node.
struct OnnxTensor {
  std::string name;
  HostTensor tensor;  // a view into the file, or a copy where that isn't aligned
};

// The float32 tensors of an ONNX file (ModelProto, a protocol buffer), those of graphs within its nodes too. Nothing
// else of it is looked at. Bad input if the bytes aren't whole or a tensor isn't as long as it says.
std::vector<OnnxTensor> read_onnx_tensors(const std::shared_ptr<const MappedFile>& file);

}  // namespace consonant
