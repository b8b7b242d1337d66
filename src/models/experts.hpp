// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "formats/model_file.hpp"
#include "ops/route/route.hpp"

namespace consonant {

// A mixture of experts as GGUF's "<architecture>.expert_*" keys tell it, checked against each other and against the
// tensors: bad input that names the key for what doesn't fit.
struct ExpertConfig {
  int64_t count, used;
  int64_t ff;      // width of an expert
  int64_t shared;  // experts that every token goes through, as one of their widths together; 0: none
  RouteAttr route;

  // `usual` is what holds where the file has no key for it.
  ExpertConfig(const ModelFile& file, std::string_view architecture, const RouteAttr& usual);
};

}  // namespace consonant
