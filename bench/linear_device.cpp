// SPDX-License-Identifier: Apache-2.0
// Products on an accelerator: microseconds, bytes of weights a second (decode, from memory: launches go round copies of
// the weights that are larger than its caches) and operations a second (prefill).
//
//   linear_device [--device cuda] [--types q4_k,f16] [--shapes 4096x12288,...] [--tokens 1,8,512] [--json FILE]
//
// A shape is inputs x outputs. The launches of a measurement are captured once and launched as one.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "ops/linear/linear.hpp"
#include "runtime/backends.hpp"
#include "tensor/convert.hpp"

namespace consonant {
namespace {

struct Options {
  std::string device = "cuda", json;
  std::vector<std::string> types = {"q4_k", "q6_k", "q8_0", "q4_0", "q5_1",   "q5_k",   "q2_k", "q3_k",
                                    "q4_1", "q5_0", "f16",  "bf16", "iq4_nl", "iq4_xs", "mxfp4"};
  std::vector<std::string> shapes = {"4096x12288"};
  std::vector<std::string> tokens = {"1", "2", "4", "8", "16", "32", "64", "128", "512", "2048"};
};

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> parts;
  std::stringstream from(list);
  for (std::string part; std::getline(from, part, ',');) parts.push_back(part);
  return parts;
}

Options parse(int argc, char** argv) {
  Options o;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string key = argv[i], value = argv[i + 1];
    if (key == "--device")
      o.device = value;
    else if (key == "--json")
      o.json = value;
    else if (key == "--types")
      o.types = split(value);
    else if (key == "--shapes")
      o.shapes = split(value);
    else if (key == "--tokens")
      o.tokens = split(value);
    else
      bad_usage("what is {}?", key);
  }
  return o;
}

// The matrix as it lies on a device. Its rows repeat after 64: encoding them all would take longer than measuring.
std::vector<std::byte> matrix_bytes(DType type, int64_t rows, int64_t k) {
  const int64_t some = 64, size = row_bytes(type, k);
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 0.02f);
  std::vector<float> row(static_cast<size_t>(k));
  std::vector<std::byte> plain(static_cast<size_t>(some * size));
  for (int64_t r = 0; r < some; ++r) {
    for (float& w : row) w = normal(random);
    encode_row(type, row.data(), plain.data() + r * size, k);
  }
  std::vector<std::byte> pattern = plain;
  int64_t bytes = rows * size;
  if (is_quantized(type)) {
    const PackedShape shape = packed_shape(type, some, k);
    pattern.resize(static_cast<size_t>(shape.bytes()));
    pack_groups(shape, plain.data(), pattern.data(), 0, shape.groups());
    bytes = packed_shape(type, rows, k).bytes();
  }
  std::vector<std::byte> all(static_cast<size_t>(bytes));
  for (size_t at = 0; at < all.size(); at += pattern.size())
    std::copy_n(pattern.data(), std::min(pattern.size(), all.size() - at), all.data() + at);
  return all;
}

class Memory {
 public:
  explicit Memory(Accelerator& device) : device_(device) {}
  ~Memory() {
    for (std::byte* data : all_) device_.release(data);
  }
  std::byte* get(int64_t bytes) { return all_.emplace_back(device_.allocate(bytes)); }

 private:
  Accelerator& device_;
  std::vector<std::byte*> all_;
};

View view(std::byte* data, DType type, int64_t rows, int64_t columns, Layout layout = Layout::plain) {
  return {data, type, {rows, columns}, {columns, 1}, layout};
}

struct Figure {
  std::string type, shape, kernel;
  int64_t tokens;
  double microseconds, bytes_a_second, flop_a_second;
};

// Weights of one type and shape, in as many copies as the caches can't hold.
class Bench {
 public:
  Bench(Accelerator& device, const Backend& backend, DType type, int64_t rows, int64_t k)
      : device_(device), backend_(backend), type_(type), rows_(rows), k_(k), memory_(device) {
    const std::vector<std::byte> bytes = matrix_bytes(type, rows, k);
    bytes_ = static_cast<int64_t>(bytes.size());
    const int64_t copies = std::clamp<int64_t>((256 << 20) / bytes_ + 1, 2, 512);
    for (int64_t i = 0; i < copies; ++i) {
      copies_.push_back(memory_.get(bytes_));
      if (i == 0)
        device.upload_now(copies_[0], bytes.data(), bytes_);
      else
        device.copy(copies_.back(), copies_[0], bytes_);
    }
    device.wait();
  }

  Figure measure(int64_t tokens) {
    const Node node = node_of(tokens);
    const GpuChoice choice = choose_kernel(node, backend_.kernels(), device_.limits(), false);
    if (!choice.kernel) throw_error(Exit::failed, "{}", choice.refusal.reason);
    const GpuKernel& kernel = *choice.kernel;
    Memory memory(device_);
    std::byte *const x = memory.get(tokens * k_ * 4), *const y = memory.get(tokens * rows_ * 4);
    std::byte* const scratch = memory.get(kernel.scratch ? kernel.scratch(node, device_.limits()) : 0);
    fill(x, tokens * k_);
    const auto launch = [&](size_t copy) {
      const Layout layout = is_quantized(type_) ? Layout::rows8 : Layout::plain;
      const View in[] = {view(x, DType::f32, tokens, k_), view(copies_[copy], type_, rows_, k_, layout)};
      const View out[] = {view(y, DType::f32, tokens, rows_)};
      kernel.launch({&node, in, out}, device_, scratch);
    };
    launch(0);
    device_.wait();
    const size_t launches = std::max<size_t>(64, copies_.size());
    device_.begin_capture();
    for (size_t i = 0; i < launches; ++i) launch(i % copies_.size());
    const auto captured = device_.end_capture();
    double best = 1e9;
    for (int trial = 0; trial < 4; ++trial) {
      const double start = now();
      int64_t count = 0;
      do {
        device_.launch(*captured);
        device_.launch(*captured);
        device_.wait();
        count += static_cast<int64_t>(2 * launches);
      } while (now() - start < 0.03);
      best = std::min(best, (now() - start) / static_cast<double>(count));
    }
    return {std::string(name(type_)),
            fmt::format("{}x{}", k_, rows_),
            std::string(kernel.name),
            tokens,
            best * 1e6,
            static_cast<double>(bytes_) / best,
            2.0 * static_cast<double>(tokens * rows_) * static_cast<double>(k_) / best};
  }

 private:
  Node node_of(int64_t tokens) const {
    const Tensor x = input("x", DType::f32, Shape{tokens, k_});
    const Tensor w = weight("w", type_, Shape{rows_, k_}, 0);
    return *linear(x, w).node;
  }
  void fill(std::byte* x, int64_t n) {
    std::mt19937 random(2);
    std::normal_distribution<float> normal;
    std::vector<float> values(static_cast<size_t>(n));
    for (float& v : values) v = normal(random);
    device_.upload_now(x, reinterpret_cast<const std::byte*>(values.data()), n * 4);
  }
  static double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }

  Accelerator& device_;
  const Backend& backend_;
  DType type_;
  int64_t rows_, k_, bytes_ = 0;
  Memory memory_;
  std::vector<std::byte*> copies_;
};

int run(const Options& options) {
  const DeviceName name = parse_device_name(options.device);
  const Backend& backend = find_backend(name.kind);
  const std::unique_ptr<Accelerator> device = backend.open(name.index);
  std::string json;
  fmt::print("{}, {}\n{:<7} {:>14} {:>7} {:>11} {:>9} {:>9}  {}\n", device->info().name, device->info().driver, "w",
             "shape", "tokens", "us", "GB/s", "TFLOP/s", "kernel");
  for (const std::string& shape : options.shapes)
    for (const std::string& type_name : options.types) {
      const std::optional<DType> type = find_dtype(type_name);
      long long k = 0, rows = 0;
      if (!type || std::sscanf(shape.c_str(), "%lldx%lld", &k, &rows) != 2)
        bad_usage("{} {} is no type and shape", type_name, shape);
      if (k % info(*type).block != 0) continue;
      Bench bench(*device, backend, *type, rows, k);
      for (const std::string& tokens : options.tokens) {
        const Figure f = bench.measure(std::stoll(tokens));
        fmt::print("{:<7} {:>14} {:>7} {:>11.2f} {:>9.0f} {:>9.1f}  {}\n", f.type, f.shape, f.tokens, f.microseconds,
                   f.bytes_a_second * 1e-9, f.flop_a_second * 1e-12, f.kernel);
        std::fflush(stdout);
        json += fmt::format(
            "{}\n  {{\"type\": \"{}\", \"shape\": \"{}\", \"tokens\": {}, \"us\": {:.3f}, \"bytes_per_s\": {:.4g}, "
            "\"flop_per_s\": {:.4g}, \"kernel\": \"{}\"}}",
            json.empty() ? "" : ",", f.type, f.shape, f.tokens, f.microseconds, f.bytes_a_second, f.flop_a_second,
            f.kernel);
      }
    }
  if (!options.json.empty())
    std::ofstream(options.json) << fmt::format("{{\"device\": \"{}\", \"products\": [{}\n]}}\n", device->info().name,
                                               json);
  return 0;
}

}  // namespace
}  // namespace consonant

int main(int argc, char** argv) {
  try {
    return consonant::run(consonant::parse(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "linear_device: %s\n", error.what());
    return 1;
  }
}
