// SPDX-License-Identifier: Apache-2.0
#include "formats/convert.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/error.hpp"
#include "base/threads.hpp"
#include "tensor/convert.hpp"

namespace consonant {

namespace {

struct Kind {
  std::string_view name;
  DType type;         // of most matrices
  int64_t file_type;  // llama.cpp's number for `general.file_type`
  bool mixed = false;
};

constexpr std::array<Kind, 10> kinds = {{{"f32", DType::f32, 0},
                                         {"f16", DType::f16, 1},
                                         {"bf16", DType::bf16, 32},
                                         {"q8_0", DType::q8_0, 7},
                                         {"q4_0", DType::q4_0, 2},
                                         {"q4_1", DType::q4_1, 3},
                                         {"q5_0", DType::q5_0, 8},
                                         {"q5_1", DType::q5_1, 9},
                                         {"q4_k_m", DType::q4_k, 15, true},
                                         {"q6_k", DType::q6_k, 18}}};

const Kind& kind_of(std::string_view name) {
  for (const Kind& k : kinds)
    if (k.name == name) return k;
  bad_usage("--type {}: should be one of {}", name, conversion_types());
}

// What takes the place of a kind whose blocks don't divide a row.
DType fitting(DType type, int64_t columns) {
  const auto fits = [&](DType t) { return columns % info(t).block == 0; };
  if (fits(type)) return type;
  const DType smaller = type == DType::q4_k ? DType::q5_0 : DType::q8_0;
  return fits(smaller) ? smaller : DType::f16;
}

constexpr int64_t most_layers = int64_t{1} << 24;  // far above any model; keeps products of it in range

// The layers that gain most from more bits: the first and the last eighth, and each third between.
bool wants_more_bits(int64_t layer, int64_t layers) {
  return layer < layers / 8 || layer >= 7 * layers / 8 || (layer - layers / 8) % 3 == 2;
}

class Planner {
 public:
  Planner(const ModelFile& model, const Kind& kind) : model_(model), kind_(kind) {
    const std::string architecture(model.meta->string("general.architecture"));
    const auto layers = [&](const std::string& key) {
      const int64_t n = model.meta->integer(key);
      if (n < 1 || n > most_layers)
        bad_input("{}: {} is {}, should be from 1 to {}", model.meta->source, key, n, most_layers);
      return n;
    };
    if (architecture == "whisper") {
      stacks_ = {{"enc.blk.", layers("whisper.encoder.block_count")},
                 {"dec.blk.", layers("whisper.decoder.block_count")}};
      tied_ = true;
      return;
    }
    if (architecture == "qwen3tts_tokenizer") {
      codec_ = true;
      return;
    }
    if (architecture == "qwen3tts") {
      stacks_ = {{"talker.blk.", layers("qwen3tts.talker.n_layers")},
                 {"code_pred.blk.", layers("qwen3tts.code_pred.n_layers")}};
      return;
    }
    if (architecture == "silero_vad") {
      small_ = true;
      return;
    }
    stacks_ = {{"blk.", layers(architecture + ".block_count")}};
    // Eight query heads share one value head there, so its matrix is small and counts for more.
    large_ = stacks_[0].layers == 80 && (architecture == "llama" || architecture == "qwen2");
    tied_ = !model.find("output.weight");
  }

  DType type(const StoredTensor& t) const {
    const bool matrix = t.sizes.size() >= 2 && t.name.ends_with(".weight") && !t.name.ends_with("_norm.weight");
    if (!is_float(t.type) && !is_quantized(t.type)) return t.type;
    if (codec_) return codec_type(t);
    // A router is small, and what it gets wrong goes to other experts.
    if (!matrix || t.name.ends_with("position_embd.weight") || t.name.ends_with(".ffn_gate_inp.weight") ||
        t.name.ends_with(".ssm_conv1d.weight"))
      return DType::f32;
    if (small_ || is_convolution(t)) return kind_.type == DType::f32 ? DType::f32 : DType::f16;
    if (!is_quantized(kind_.type)) return kind_.type;
    if (t.type == kind_.type) return t.type;  // quantised already, and so is the rest
    return fitting(wanted(t), t.sizes.back());
  }

 private:
  struct Stack {
    std::string_view prefix;
    int64_t layers;
  };

  // Small, and all of the sound goes through them.
  static bool is_convolution(const StoredTensor& t) {
    return t.name == "enc.conv1.weight" || t.name == "enc.conv2.weight" || t.name.starts_with("speaker.");
  }

  // What gives the logits.
  bool is_head(const StoredTensor& t) const {
    return t.name == "output.weight" || t.name == "talker.output.weight" || t.name.starts_with("code_pred.output.") ||
           (tied_ && t.name == "token_embd.weight");
  }

  // Convolutions have rows of a few taps. What picks codes has to be as exact as the reference.
  DType codec_type(const StoredTensor& t) const {
    if (t.sizes.size() < 2 || t.name.ends_with("codebook") || t.name.starts_with("codec.enc.rvq.")) return DType::f32;
    if (t.sizes.size() > 2) return kind_.type == DType::f32 ? DType::f32 : DType::f16;
    if (!is_quantized(kind_.type) || t.type == kind_.type) return kind_.type;
    return fitting(kind_.type, t.sizes.back());
  }

  DType wanted(const StoredTensor& t) const {
    const auto is = [&](std::string_view part) { return t.name.ends_with(part); };
    if (is_head(t))
      return kind_.type == DType::q8_0 || t.sizes.back() % info(kind_.type).block != 0 ? DType::q8_0 : DType::q6_k;
    if (!kind_.mixed) return kind_.type;
    if (is(".attn_v.weight")) {
      if (gains(t)) return DType::q6_k;
      return large_ ? DType::q5_k : kind_.type;
    }
    if ((is(".ffn_down.weight") || is(".ffn_down_exps.weight")) && gains(t)) return DType::q6_k;
    return kind_.type;
  }

  bool gains(const StoredTensor& t) const {
    for (const Stack& stack : stacks_) {
      if (!t.name.starts_with(stack.prefix)) continue;
      int64_t number = -1;
      std::from_chars(t.name.data() + stack.prefix.size(), t.name.data() + t.name.size(), number);
      if (number >= 0 && number < stack.layers) return wants_more_bits(number, stack.layers);
    }
    bad_input("{}: tensor \"{}\" isn't of one of the {} layers", model_.meta->source, t.name, stacks_.back().layers);
  }

  const ModelFile& model_;
  const Kind& kind_;
  std::vector<Stack> stacks_;
  bool large_ = false, tied_ = false;
  bool small_ = false;  // all of it: nothing is gained by fewer bits than those of f16
  bool codec_ = false;
};

// Rows of `from` as `type`, a few at a time so that a large matrix needn't be held twice.
class Encoder {
 public:
  Encoder(const std::string& name, const HostTensor& from, DType type)
      : name_(name),
        from_(from),
        type_(type),
        columns_(from.columns()),
        from_stride_(static_cast<size_t>(row_bytes(from.type, columns_))),
        stride_(static_cast<size_t>(row_bytes(type, columns_))) {}

  void write(ThreadPool& pool, const ByteSink& sink) const {
    if (from_.type == type_) return sink(from_.bytes);
    constexpr int64_t rows_a_chunk = 16;
    const int64_t rows = from_.rows(), at_once = rows_a_chunk * 4 * pool.threads();
    std::vector<std::byte> out;
    for (int64_t first = 0; first < rows; first += at_once) {
      const int64_t count = std::min(at_once, rows - first);
      out.resize(static_cast<size_t>(count) * stride_);
      pool.run((count + rows_a_chunk - 1) / rows_a_chunk, [&](int64_t chunk, int) {
        std::vector<float> row(static_cast<size_t>(columns_));
        for (int64_t r = chunk * rows_a_chunk; r < std::min(count, (chunk + 1) * rows_a_chunk); ++r)
          encode(first + r, row, out.data() + static_cast<size_t>(r) * stride_);
      });
      sink(out);
    }
  }

 private:
  void encode(int64_t r, std::vector<float>& row, std::byte* to) const {
    decode_row(from_.type, from_.bytes.data() + static_cast<size_t>(r) * from_stride_, row.data(), columns_);
    for (const float x : row)
      if (is_quantized(type_) ? !std::isfinite(x) : type_ == DType::f16 && std::isfinite(x) && std::abs(x) >= 65520)
        bad_input("tensor \"{}\": row {} holds {}, which {} can't store", name_, r, x, consonant::name(type_));
    encode_row(type_, row.data(), to, columns_);
  }

  const std::string& name_;
  const HostTensor& from_;
  DType type_;
  int64_t columns_;
  size_t from_stride_, stride_;
};

void check_source(const ModelFile& model, const std::vector<GgufTensorPlan>& plan) {
  for (size_t i = 0; i < plan.size(); ++i) {
    const StoredTensor& t = model.tensors[i];
    if (is_quantized(t.type) && is_quantized(plan[i].type) && t.type != plan[i].type)
      bad_usage("{}: tensor \"{}\" is {} already; convert from the original to get {}", model.meta->source, t.name,
                name(t.type), name(plan[i].type));
  }
  if (model.meta->string("tokenizer.ggml.model", "") == "gpt2" && !model.meta->has("tokenizer.ggml.pre"))
    bad_input(
        "{}: how its tokenizer splits text isn't recognised, so no GGUF file can say it; state it with "
        "--override-kv tokenizer.ggml.pre=str:NAME if you know",
        model.meta->source);
}

// The metadata of the file to be: the model's, with what tells of its types.
Meta with_types(const Meta& from, const Kind& kind) {
  Meta out;
  out.source = from.source;
  for (const auto& [key, value] : from.entries()) out.add(key, value);
  out.replace("general.file_type", {MetaType::u32, false, kind.file_type});
  out.replace("general.quantization_version", {MetaType::u32, false, int64_t{2}});
  return out;
}

}  // namespace

std::string conversion_types() {
  std::string out;
  for (const Kind& k : kinds) out.append(out.empty() ? "" : ", ").append(k.name);
  return out;
}

std::vector<GgufTensorPlan> plan_conversion(const ModelFile& model, std::string_view type) {
  const Planner planner(model, kind_of(type));
  std::vector<GgufTensorPlan> plan;
  for (const StoredTensor& t : model.tensors) plan.push_back({t.name, planner.type(t), t.sizes});
  return plan;
}

void convert_model(const ModelFile& model, const std::filesystem::path& out, std::string_view type, int threads,
                   const std::function<void(size_t done, size_t all)>& progress) {
  const Kind& kind = kind_of(type);
  const std::vector<GgufTensorPlan> plan = plan_conversion(model, type);
  check_source(model, plan);
  ThreadPool pool(threads);
  write_gguf(out, with_types(*model.meta, kind), plan, [&](size_t i, const ByteSink& sink) {
    if (progress) progress(i, plan.size());
    const HostTensor from = model.tensors[i].load();
    Encoder(plan[i].name, from, plan[i].type).write(pool, sink);
    model.release(from.bytes);
  });
}

}  // namespace consonant
