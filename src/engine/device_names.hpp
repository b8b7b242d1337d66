// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace consonant {

// Wrong usage for a name that means no device; nothing is opened.
void check_device_name(const std::string& device);

}  // namespace consonant
