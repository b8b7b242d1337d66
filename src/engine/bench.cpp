// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <functional>
#include <numeric>

#include "base/clock.hpp"
#include "engine/bench_tokens.hpp"
#include "engine/language_engine.hpp"

namespace consonant {

namespace {

class Sequences {
 public:
  Sequences(Runner& runner, int64_t n) : runner_(runner) {
    for (int64_t i = 0; i < n; ++i) ids_.push_back(runner.open());
  }
  ~Sequences() {
    for (int id : ids_) runner_.close(id);
  }

  // Reads tokens[i] with sequence i.
  void read(const std::vector<std::vector<int32_t>>& tokens) { runner_.evaluate(pieces(tokens)); }

  // The same as a step of a generation: an accelerator draws the next tokens (and others are read in their place).
  // The processor doesn't: its logits are where a sampler would look for them.
  void step(const std::vector<std::vector<int32_t>>& tokens) {
    if (!runner_.draws_on_device()) return read(tokens);
    const std::vector<Draw> draws(ids_.size(), Draw{&greedy_, {}});
    runner_.evaluate_and_draw(pieces(tokens), draws);
  }

 private:
  std::vector<Piece> pieces(const std::vector<std::vector<int32_t>>& tokens) const {
    std::vector<Piece> all;
    for (size_t i = 0; i < ids_.size(); ++i) all.push_back({ids_[i], tokens[i], false});
    return all;
  }

  Runner& runner_;
  std::vector<int> ids_;
  Sampler greedy_{Sampling{}};
};

// A copy reads and writes each byte. Larger than any cache, and all of it queued before the wait.
double copy_bandwidth(Accelerator& device) {
  constexpr int64_t bytes = int64_t{256} << 20;
  constexpr int times = 10;
  const Buffer from(bytes, &device), to(bytes, &device);
  device.copy(to.data(), from.data(), bytes);
  device.wait();
  const auto start = Clock::now();
  for (int i = 0; i < times; ++i) device.copy(to.data(), from.data(), bytes);
  device.wait();
  return 2.0 * bytes * times / seconds_since(start);
}

// The kernels of the step that `step` takes, those of the most time first.
std::vector<BenchResult::Kernel> time_kernels(Runner& runner, const std::function<void()>& step) {
  std::vector<Program::KernelTime> times;
  struct Timing {  // ends with the step, also with one that fails
    Runner& runner;
    ~Timing() { runner.time_kernels(nullptr); }
  };
  {
    const Timing timing{runner};
    runner.time_kernels(&times);
    step();
  }
  std::vector<BenchResult::Kernel> kernels;
  for (Program::KernelTime& t : times) kernels.push_back({std::move(t.name), t.nodes, t.seconds, t.weight_bytes});
  const auto total = [](const BenchResult::Kernel& k) { return static_cast<double>(k.count) * k.seconds; };
  std::stable_sort(kernels.begin(), kernels.end(), [&](const auto& a, const auto& b) { return total(a) > total(b); });
  return kernels;
}

constexpr int64_t first_salt = 10;  // of the tokens of the first repetition

}  // namespace

BenchResult run_bench(Engine& engine, const BenchOptions& options) {
  LanguageEngine& language = language_engine(engine);
  Runner& shared = language.runner();
  if (options.prompt < 1 || options.generate < 0 || options.depth < 0 || options.batch < 1 || options.repeat < 1)
    bad_usage("a benchmark of {} prompt tokens, {} generated at depth {}, batch {}, {} times", options.prompt,
              options.generate, options.depth, options.batch, options.repeat);
  if (options.kernels && !shared.device().accelerator)
    bad_usage("kernels are timed on accelerators, not on {}", engine.info().device);
  const int64_t longest = options.depth + std::max(options.prompt, options.generate + 1);
  if (longest > shared.context()) bad_input("{} tokens don't fit the context of {}", longest, shared.context());
  std::unique_ptr<Runner> own;
  if (options.batch > 1) own = language.make_runner(engine.info().threads, static_cast<int>(options.batch));
  Runner& runner = own ? *own : shared;
  const int64_t vocabulary = engine.info().vocabulary;
  const auto texts = [&](int64_t n, int64_t salt) {
    std::vector<std::vector<int32_t>> all;
    for (int64_t i = 0; i < options.batch; ++i) all.push_back(some_tokens(n, vocabulary, salt * 1000 + i));
    return all;
  };

  BenchResult result;
  result.threads = engine.info().threads;
  result.prompt = options.prompt, result.generated = options.generate;
  result.depth = options.depth, result.batch = options.batch;
  const auto once = [&](bool count, int64_t salt) {
    Sequences sequences(runner, options.batch);
    if (options.depth > 0) sequences.read(texts(options.depth, salt + 1));
    const auto start = Clock::now();
    sequences.read(texts(options.prompt, salt + 2));
    const double prompt_s = seconds_since(start);
    if (count) {
      result.prefill_tokens_per_s.push_back(static_cast<double>(options.prompt * options.batch) / prompt_s);
      result.time_to_first_token_ms.push_back(prompt_s * 1e3);
    }
  };
  const auto decode = [&](bool count, int64_t salt) {
    Sequences sequences(runner, options.batch);
    if (options.depth > 0) sequences.read(texts(options.depth, salt + 3));
    sequences.step(texts(1, salt + 4));
    const auto tokens = texts(options.generate, salt + 5);
    const Accelerator* device = runner.device().accelerator.get();
    const int64_t launches = device ? device->launches() : 0, waits = device ? device->waits() : 0;
    const auto start = Clock::now();
    for (int64_t i = 0; i < options.generate; ++i) {
      std::vector<std::vector<int32_t>> next;
      for (const auto& text : tokens) next.push_back({text[static_cast<size_t>(i)]});
      sequences.step(next);
      if (salt == first_salt && i == options.generate * 2 / 3) result.begin = memory_in_use(engine);
    }
    if (device && options.generate > 0) {
      const auto steps = static_cast<double>(options.generate);
      result.launches_per_token = static_cast<double>(device->launches() - launches) / steps;
      result.waits_per_token = static_cast<double>(device->waits() - waits) / steps;
    }
    if (count && options.generate > 0)
      result.decode_tokens_per_s.push_back(static_cast<double>(options.generate * options.batch) /
                                           seconds_since(start));
  };
  // Programs are planned, captured and pages committed outside of the measurement.
  const auto warm_up = [&] {
    once(false, 0);
    Sequences sequences(runner, options.batch);
    if (options.depth > 0) sequences.read(texts(options.depth, 1));
    for (int64_t i = 0; i < std::min<int64_t>(options.generate + 1, 3); ++i) sequences.step(texts(1, i));
  };
  warm_up();
  result.begin = memory_in_use(engine);
  for (int64_t i = 1; i <= options.repeat; ++i) once(true, i * first_salt), decode(true, i * first_salt);
  result.end = memory_in_use(engine);
  if (options.kernels) {
    Sequences sequences(runner, options.batch);
    sequences.read(texts(std::max<int64_t>(longest - 1, 1), 1));
    result.kernels = time_kernels(runner, [&] { sequences.step(texts(1, 2)); });
  }
  result.decode_bytes_per_token = engine.info().weight_bytes / options.batch + 2 * runner.slot_bytes() +
                                  (options.depth + options.generate / 2) * runner.kv_bytes_per_position();
  if (Accelerator* device = runner.device().accelerator.get()) result.bandwidth = copy_bandwidth(*device);
  return result;
}

double measure_bandwidth(int threads) {
  constexpr int64_t bytes = int64_t{256} << 20, chunk = int64_t{1} << 20;
  const Buffer buffer(bytes);
  for (int64_t i = 0; i < bytes; i += 4096) buffer.data()[i] = std::byte{1};  // commit
  ThreadPool pool(threads);
  std::atomic<uint64_t> sink{0};
  double best = 0;
  for (int repeat = 0; repeat < 5; ++repeat) {
    const auto start = Clock::now();
    pool.run(bytes / chunk, [&](int64_t i, int) {
      const auto* words = reinterpret_cast<const uint64_t*>(buffer.data() + i * chunk);
      uint64_t sums[8] = {};
      for (int64_t w = 0; w < chunk / 8; w += 8)
        for (int j = 0; j < 8; ++j) sums[j] += words[w + j];
      sink += std::accumulate(std::begin(sums), std::end(sums), uint64_t{0});
    });
    best = std::max(best, static_cast<double>(bytes) / seconds_since(start));
  }
  return best;
}

}  // namespace consonant
