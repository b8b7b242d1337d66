// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/program.hpp"

namespace consonant {

// How a node of a device differs from the reference's, over the steps of a run.
struct NodeDifference {
  std::string name, op, kernel, source;  // source: "llama.cpp:36"
  int64_t rows = 0;                      // compared so far
  // The worst row's: root mean square of the differences over that of the reference's row. NaN where a number isn't
  // finite in just one of them; infinite where integers differ.
  double error = 0;
  double tolerance = 0;
  bool within() const { return error <= tolerance; }  // NaN isn't
};

// What a node may differ by if its inputs are the reference's. Float32 sums in another order stay far below the first;
// a kernel that rounds its inputs by r makes errors of about r, which nearly cancelling sums enlarge.
double lockstep_tolerance(double rounding);

// Compares two programs of the same graph that run the same steps, node by node. Every node of the device is given the
// reference's inputs if `corrected`: then an error is its own kernel's. Otherwise the device's go on, and errors add
// up. A node that covers several of the reference's is compared with those that made its outputs; what it stores in few
// bits may be rounded to either neighbour.
class Lockstep {
 public:
  explicit Lockstep(bool corrected) : corrected_(corrected) {}

  // For the reference's step, then for the device's of the same batch.
  Program::Observer reference();
  Program::Observer device();

  // In the order of the device's nodes.
  const std::vector<NodeDifference>& nodes() const { return nodes_; }
  // Nodes of the device that the reference has no value for.
  const std::vector<std::string>& not_compared() const { return not_compared_; }

 private:
  struct Kept {
    DType type = DType::f32;
    Shape shape;
    std::vector<std::byte> bytes;
  };

  std::vector<Kept*> kept_for(const Node& node);
  bool compare(const PlannedNode& planned, std::span<const View> outputs);
  NodeDifference& entry(const PlannedNode& planned);

  bool corrected_;
  std::map<std::string, std::vector<Kept>> kept_;  // of the step, by the node's name
  std::map<std::string, size_t> index_;
  std::vector<NodeDifference> nodes_;
  std::vector<std::string> not_compared_;
};

}  // namespace consonant
