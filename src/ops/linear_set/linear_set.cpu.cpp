// SPDX-License-Identifier: Apache-2.0
#include "ops/linear_set/linear_set_rows.hpp"

namespace consonant {

extern const Kernel linear_set_cpu = {DeviceKind::cpu, Op::linear_set, LinearSetRows<float>::can_run,
                                      LinearSetRows<float>::work, LinearSetRows<float>::run};

}  // namespace consonant
