// SPDX-License-Identifier: Apache-2.0
#include "formats/silero.hpp"

#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "formats/mapped_file.hpp"
#include "formats/onnx_tensors.hpp"
#include "formats/safetensors.hpp"

namespace consonant {

namespace {

// A tensor's name in safetensors, the end of its name in ONNX, and ours.
struct Renamed {
  std::string_view safetensors, onnx, name;
  size_t rank;  // 3: a convolution's [outputs, inputs, taps]
};

constexpr std::array<Renamed, 15> tensors = {{{"stft_conv.weight", "stft.forward_basis_buffer", "stft.weight", 3},
                                              {"conv1.weight", "encoder.0.reparam_conv.weight", "enc.0.weight", 3},
                                              {"conv1.bias", "encoder.0.reparam_conv.bias", "enc.0.bias", 1},
                                              {"conv2.weight", "encoder.1.reparam_conv.weight", "enc.1.weight", 3},
                                              {"conv2.bias", "encoder.1.reparam_conv.bias", "enc.1.bias", 1},
                                              {"conv3.weight", "encoder.2.reparam_conv.weight", "enc.2.weight", 3},
                                              {"conv3.bias", "encoder.2.reparam_conv.bias", "enc.2.bias", 1},
                                              {"conv4.weight", "encoder.3.reparam_conv.weight", "enc.3.weight", 3},
                                              {"conv4.bias", "encoder.3.reparam_conv.bias", "enc.3.bias", 1},
                                              {"lstm_cell.weight_ih", "decoder.rnn.weight_ih", "lstm.input.weight", 2},
                                              {"lstm_cell.bias_ih", "decoder.rnn.bias_ih", "lstm.input.bias", 1},
                                              {"lstm_cell.weight_hh", "decoder.rnn.weight_hh", "lstm.hidden.weight", 2},
                                              {"lstm_cell.bias_hh", "decoder.rnn.bias_hh", "lstm.hidden.bias", 1},
                                              {"final_conv.weight", "decoder.decoder.2.weight", "output.weight", 3},
                                              {"final_conv.bias", "decoder.decoder.2.bias", "output.bias", 1}}};

constexpr int64_t most_onnx_bytes = int64_t{64} << 20;

// [outputs, inputs, taps] -> [outputs, taps * inputs].
HostTensor taps_first(const HostTensor& from) {
  const int64_t outputs = from.sizes[0], inputs = from.sizes[1], taps = from.sizes[2];
  HostTensor to = HostTensor::allocate(from.type, {outputs, taps * inputs});
  const auto size = static_cast<size_t>(info(from.type).block_bytes);
  const std::byte* read = from.bytes.data();
  std::byte* write = to.mutable_bytes().data();
  for (int64_t o = 0; o < outputs; ++o)
    for (int64_t i = 0; i < inputs; ++i)
      for (int64_t k = 0; k < taps; ++k, read += size)
        std::memcpy(write + static_cast<size_t>((o * taps + k) * inputs + i) * size, read, size);
  return to;
}

struct Found {
  DType type;
  Sizes sizes;
  std::function<HostTensor()> load;
};
using Find = std::function<std::optional<Found>(const Renamed&)>;

Find in_safetensors(std::shared_ptr<const SafetensorsFile> file) {
  return [file = std::move(file)](const Renamed& name) -> std::optional<Found> {
    const SafetensorsEntry* e = file->find(name.safetensors);
    if (e == nullptr) return std::nullopt;
    return Found{e->type, e->sizes, [file, e] { return file->tensor(*e); }};
  };
}

// silero_vad.onnx chooses between two models by the rate: 16 kHz is its then-branch, or comes without a mark.
Find in_onnx(const std::shared_ptr<const MappedFile>& file) {
  auto all = std::make_shared<const std::vector<OnnxTensor>>(read_onnx_tensors(file));
  return [all](const Renamed& name) -> std::optional<Found> {
    for (const OnnxTensor& t : *all) {
      if (!t.name.ends_with(name.onnx) || t.name.find("else_branch") != t.name.npos ||
          t.name.find("model_8k") != t.name.npos)
        continue;
      return Found{t.tensor.type, t.tensor.sizes, [all, &t] { return t.tensor; }};
    }
    return std::nullopt;
  };
}

StoredTensor stored(const std::string& path, const Renamed& name, std::string_view there, const Find& find) {
  auto found = find(name);
  if (!found) bad_input("{}: a Silero VAD file without {}", path, there);
  if (!is_float(found->type)) bad_input("{}: {} is {}, not float numbers", path, there, consonant::name(found->type));
  if (found->sizes.size() != name.rank)
    bad_input("{}: {} has sizes {}; {} of them were wanted", path, there, to_string(found->sizes), name.rank);
  StoredTensor t{std::string(name.name), found->type, found->sizes, 0, std::move(found->load)};
  if (name.rank == 3) {
    t.sizes = {found->sizes[0], checked_mul(found->sizes[1], found->sizes[2])};
    t.load = [load = std::move(t.load)] { return taps_first(load()); };
  }
  t.bytes = element_count(t.sizes) * info(t.type).block_bytes;
  return t;
}

bool is_silero_onnx(const MappedFile& file) {
  // A ModelProto begins with its version, field 1; the search is kept to files of a likely size.
  const std::string_view text = file.text();
  return file.size() <= most_onnx_bytes && text.starts_with('\x08') &&
         text.find("stft.forward_basis_buffer") != text.npos;
}

bool is_silero_safetensors(const MappedFile& file) {
  const std::string_view text = file.text();
  uint64_t header = 0;
  if (text.size() < sizeof header) return false;
  std::memcpy(&header, text.data(), sizeof header);
  if (header > text.size() - sizeof header) return false;
  const std::string_view json = text.substr(sizeof header, static_cast<size_t>(header));
  return json.starts_with('{') && json.find("\"stft_conv.weight\"") != json.npos &&
         json.find("\"lstm_cell.weight_hh\"") != json.npos;
}

}  // namespace

bool is_silero_vad(const MappedFile& file) { return is_silero_safetensors(file) || is_silero_onnx(file); }

ModelFile open_silero_vad(const std::filesystem::path& path) {
  const auto file = MappedFile::open(path);
  const bool onnx = !is_silero_safetensors(*file);
  const Find find = onnx ? in_onnx(file) : in_safetensors(std::make_shared<const SafetensorsFile>(file));
  ModelFile model;
  model.meta = std::make_shared<Meta>();
  model.meta->source = path.string();
  model.meta->add("general.architecture", {MetaType::string, false, std::string_view("silero_vad")});
  model.meta->add("general.name", {MetaType::string, false, std::string_view("Silero VAD")});
  for (const Renamed& name : tensors)
    model.tensors.push_back(stored(path.string(), name, onnx ? name.onnx : name.safetensors, find));
  const auto number = [&](const char* key, int64_t value) {
    model.meta->add(std::string("silero_vad.") + key, {MetaType::u32, false, value});
  };
  number("sample_rate", 16000);
  number("window", 512);
  number("context", 64);
  number("embedding_length", model.find("lstm.hidden.weight")->sizes[1]);
  model.format = onnx ? "ONNX" : "safetensors";
  model.files = {path};
  model.file_bytes = file->size();
  model.release = [file](std::span<const std::byte> part) {
    if (file->holds(part)) file->release(part);
  };
  return model;
}

}  // namespace consonant
