// SPDX-License-Identifier: Apache-2.0
#include "ops/linear_set/linear_set_rows.hpp"

namespace consonant {

extern const Kernel linear_set_ref = {DeviceKind::reference, Op::linear_set, LinearSetRows<double>::can_run,
                                      LinearSetRows<double>::work, LinearSetRows<double>::run};

}  // namespace consonant
