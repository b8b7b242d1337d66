// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "cli/output.hpp"
#include "consonant/engine.hpp"
#include "consonant/verify.hpp"
#include "engine/placement.hpp"

namespace consonant {

// What the commands touch: the program gives them the real things, tests give them others.
struct World {
  Output out;
  int in = 0;  // standard input
  Clock::time_point started = Clock::now();
  std::function<std::shared_ptr<Engine>(const std::string&, const EngineOptions&)> load = Engine::load;
  std::function<BenchResult(Engine&, const BenchOptions&)> bench = run_bench;
  std::function<double(int)> bandwidth = measure_bandwidth;
  std::function<Placement(Engine&)> placement = placement_of;
  std::function<void(Engine&, const RecordOptions&, const std::string&)> record = consonant::record;
  std::function<Comparison(const std::string&, const std::string&)> compare = consonant::compare;
  std::function<std::vector<KernelReport>(const std::string&, const std::string&)> verify_ops = consonant::verify_ops;
};

}  // namespace consonant
