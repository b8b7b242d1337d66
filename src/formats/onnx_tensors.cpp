// SPDX-License-Identifier: Apache-2.0
#include "formats/onnx_tensors.hpp"

#include <cstring>
#include <optional>
#include <utility>

#include "base/checked.hpp"
#include "base/error.hpp"

namespace consonant {

namespace {

// Numbers of fields in onnx.proto.
enum ModelField : uint64_t { model_graph = 7 };
enum GraphField : uint64_t { graph_node = 1, graph_initializer = 5 };
enum NodeField : uint64_t { node_output = 2, node_attribute = 5 };
enum AttributeField : uint64_t { attribute_tensor = 5, attribute_graph = 6 };
enum TensorField : uint64_t { tensor_dims = 1, tensor_type = 2, tensor_floats = 4, tensor_name = 8, tensor_raw = 9 };
constexpr uint64_t float_type = 1;
constexpr int most_depth = 16;

// One field of a message: a number, or bytes.
struct Field {
  uint64_t number = 0, value = 0;
  std::span<const std::byte> bytes;
  bool is_bytes = false;

  std::string text() const { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }
};

class Message {
 public:
  Message(std::span<const std::byte> bytes, const std::string& path) : left_(bytes), path_(path) {}

  std::optional<Field> next() {
    if (left_.empty()) return std::nullopt;
    const uint64_t tag = varint();
    Field f;
    f.number = tag >> 3;
    switch (tag & 7) {
      case 0:
        f.value = varint();
        break;
      case 1:
        take(8);
        break;
      case 2:
        f.bytes = take(varint());
        f.is_bytes = true;
        break;
      case 5:
        take(4);
        break;
      default:
        bad_input("{}: is no whole ONNX file: a field of wire type {}", path_, tag & 7);
    }
    return f;
  }

  bool empty() const { return left_.empty(); }

  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = std::to_integer<uint64_t>(take(1)[0]);
      value |= (byte & 127) << shift;
      if (byte < 128) return value;
    }
    bad_input("{}: is no whole ONNX file: a number of more than 64 bits", path_);
  }

 private:
  std::span<const std::byte> take(uint64_t count) {
    if (count > left_.size())
      bad_input("{}: is no whole ONNX file: a field of {} bytes where {} are left", path_, count, left_.size());
    const auto bytes = left_.first(static_cast<size_t>(count));
    left_ = left_.subspan(bytes.size());
    return bytes;
  }

  std::span<const std::byte> left_;
  const std::string& path_;
};

class Reader {
 public:
  explicit Reader(std::shared_ptr<const MappedFile> file) : file_(std::move(file)) {}

  std::vector<OnnxTensor> run() {
    Message model(file_->bytes(), file_->name());
    while (const auto f = model.next())
      if (f->number == model_graph && f->is_bytes) graph(f->bytes, 0);
    return std::move(tensors_);
  }

 private:
  void graph(std::span<const std::byte> bytes, int depth) {
    if (depth > most_depth) bad_input("{}: ONNX graphs within {} others", file_->name(), depth);
    Message graph(bytes, file_->name());
    while (const auto f = graph.next()) {
      if (f->number == graph_node && f->is_bytes) node(f->bytes, depth);
      if (f->number == graph_initializer && f->is_bytes) tensor(f->bytes, "");
    }
  }

  void node(std::span<const std::byte> bytes, int depth) {
    std::string output;
    std::vector<std::span<const std::byte>> attributes;
    Message node(bytes, file_->name());
    while (const auto f = node.next()) {
      if (f->number == node_output && f->is_bytes && output.empty()) output = f->text();
      if (f->number == node_attribute && f->is_bytes) attributes.push_back(f->bytes);
    }
    for (const auto& part : attributes) {
      Message attribute(part, file_->name());
      while (const auto f = attribute.next()) {
        if (f->number == attribute_tensor && f->is_bytes) tensor(f->bytes, output);
        if (f->number == attribute_graph && f->is_bytes) graph(f->bytes, depth + 1);
      }
    }
  }

  // A Constant's tensor has the name of the node's output.
  void tensor(std::span<const std::byte> bytes, const std::string& name) {
    OnnxTensor t{name, {}};
    uint64_t type = 0;
    std::span<const std::byte> data;
    const auto add_size = [&](uint64_t size) {
      if (size > uint64_t{1} << 40) bad_input("{}: an ONNX tensor with a size of {}", file_->name(), size);
      t.tensor.sizes.push_back(static_cast<int64_t>(size));
    };
    Message tensor(bytes, file_->name());
    while (const auto f = tensor.next()) {
      if (f->number == tensor_dims && f->is_bytes) {
        for (Message sizes(f->bytes, file_->name()); !sizes.empty();) add_size(sizes.varint());
      } else if (f->number == tensor_dims) {
        add_size(f->value);
      } else if (f->number == tensor_type) {
        type = f->value;
      } else if (f->number == tensor_name && f->is_bytes && name.empty()) {
        t.name = f->text();
      } else if ((f->number == tensor_raw || f->number == tensor_floats) && f->is_bytes) {
        data = f->bytes;
      }
    }
    if (type != float_type) return;
    const int64_t count = checked_mul(element_count(t.tensor.sizes), 4);
    if (count != static_cast<int64_t>(data.size()))
      bad_input("{}: the ONNX tensor {} {} has {} bytes, not {}", file_->name(), t.name, to_string(t.tensor.sizes),
                data.size(), count);
    if (reinterpret_cast<uintptr_t>(data.data()) % alignof(float) == 0) {
      t.tensor.bytes = data;
      t.tensor.owner = file_;
    } else {
      t.tensor = HostTensor::allocate(DType::f32, t.tensor.sizes);
      if (!data.empty()) std::memcpy(t.tensor.mutable_bytes().data(), data.data(), data.size());
    }
    tensors_.push_back(std::move(t));
  }

  std::shared_ptr<const MappedFile> file_;
  std::vector<OnnxTensor> tensors_;
};

}  // namespace

std::vector<OnnxTensor> read_onnx_tensors(const std::shared_ptr<const MappedFile>& file) { return Reader(file).run(); }

}  // namespace consonant
