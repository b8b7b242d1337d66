// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "consonant/engine.hpp"
#include "decode/stop.hpp"

namespace consonant {

StopReason to_reason(Stop stop);

}  // namespace consonant
