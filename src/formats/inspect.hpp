// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "formats/json.hpp"
#include "formats/model_file.hpp"

namespace consonant {

// What a model file holds, for people. Long values are cut; tensors are listed if asked for.
std::string describe_model(const ModelFile& model, bool tensors);

// The same for programs: {"format", "files", "file_bytes", "metadata": {key: value}, "metadata_types": {key: type},
// "tensor_count", "parameters", "bytes_by_type": {type: bytes}, "tensors": [{"name", "type", "shape", "bytes"}]}.
// Arrays of metadata longer than 64 elements are given as {"type", "length"}; shapes have the slowest dimension first.
Json model_to_json(const ModelFile& model, bool tensors);

}  // namespace consonant
