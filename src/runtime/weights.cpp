// SPDX-License-Identifier: Apache-2.0
#include "runtime/weights.hpp"

#include <algorithm>
#include <cstring>
#include <memory>

#include "base/checked.hpp"
#include "base/clock.hpp"
#include "tensor/convert.hpp"
#include "tensor/packed.hpp"
#include "tensor/validate.hpp"

namespace consonant {

namespace {

constexpr int64_t slack = 64;  // vector loads may look past the end

bool is_vector(const WeightSource& source) { return source.sizes.size() < 2; }

Shape shape_of(const Sizes& sizes) {
  if (sizes.size() > Shape::max_rank) bad_input("a tensor of {} dimensions", sizes.size());
  return make_shape(sizes.data(), static_cast<int>(sizes.size()), Axis::fixed);
}

PackedShape packed_shape_of(const WeightSource& source) { return packed_shape(source.type, source.sizes); }

// Accelerators have plain matrices row by row, as their kernels read them.
bool is_packed(const WeightSource& source, DeviceKind device) {
  return !is_vector(source) && device != DeviceKind::reference &&
         (!is_accelerator(device) || is_quantized(source.type));
}

int64_t plain_bytes(const WeightSource& source) {
  const int64_t columns = source.sizes.back();
  return checked_mul(row_bytes(source.type, columns), columns == 0 ? 0 : element_count(source.sizes) / columns);
}

int64_t device_bytes(const WeightSource& source, DeviceKind device) {
  const int64_t aligned = is_accelerator(device) ? 256 : 64;
  if (is_vector(source)) return round_up(element_count(source.sizes) * 4 + slack, aligned);
  if (device == DeviceKind::reference) return 0;
  const int64_t bytes = is_packed(source, device) ? packed_shape_of(source).bytes() : plain_bytes(source);
  return round_up(checked_add(bytes, slack), aligned);
}

// Weights on their way from the file to where they stay, in windows of what lies side by side there. The threads pack a
// window's parts, whatever weights they are of; the copy of a window to another memory runs while the next is packed.
class Loader {
 public:
  using OnProgress = WeightStore::OnProgress;

  // `to`: the first weight's place; `through`: the device whose memory that is, null if it is the host's.
  Loader(std::byte* to, int64_t bytes, Accelerator* through, ThreadPool& pool, const OnProgress& on_progress)
      : to_(to), all_(bytes), through_(through), pool_(pool), on_progress_(on_progress) {
    if (through_) enlarge(window_);
  }

  // The weight whose place comes next; `room`: bytes from there to the next one's.
  void add(const WeightSource& source, bool repack, int64_t room) {
    Part part;
    part.source = &source;
    part.tensor = std::make_shared<const HostTensor>(source.load());
    if (is_vector(source)) {
      part.form = Form::decoded;
      part.count = element_count(source.sizes) / info(source.type).block;
      part.from_bytes = info(source.type).block_bytes, part.to_bytes = info(source.type).block * 4;
    } else {
      part.form = repack ? Form::rows8 : Form::plain;
      part.packed = packed_shape_of(source);
      part.count = part.packed.groups();
      part.row_bytes = row_bytes(source.type, part.packed.k);
      part.from_bytes = 8 * part.row_bytes, part.to_bytes = repack ? part.packed.group_bytes : part.from_bytes;
    }
    for (int64_t begin = 0; begin < part.count;) {
      const int64_t fit = part.to_bytes > 0 ? (window_ - used_) / part.to_bytes : part.count;
      if (fit == 0 && used_ == 0) enlarge(part.to_bytes);
      if (fit == 0) {
        flush();
        continue;
      }
      part.begin = begin, part.end = begin = std::min(part.count, begin + fit);
      part.to = target() + used_;
      used_ += part.place(part.end) - part.place(part.begin);
      parts_.push_back(part);
    }
    for (int64_t gap = room - part.place(part.count); gap > 0;) {
      const int64_t n = std::min(gap, window_ - used_);
      std::memset(target() + used_, 0, static_cast<size_t>(n));
      used_ += n, gap -= n;
      if (used_ == window_) flush();
    }
  }

  void finish() {
    flush();
    if (copies_) through_->wait();
    copies_ = false;
  }

 private:
  static constexpr int64_t alignment = 256;
  enum class Form { decoded, plain, rows8 };
  // Groups of up to eight rows of a matrix, or blocks of a vector.
  struct Part {
    const WeightSource* source = nullptr;
    std::shared_ptr<const HostTensor> tensor;
    Form form = Form::plain;
    PackedShape packed{};
    int64_t row_bytes = 0, from_bytes = 0, to_bytes = 0;  // of a row and of a group in the file, of a group in place
    int64_t count = 0, begin = 0, end = 0;                // groups of the weight, and those of this part
    std::byte* to = nullptr;                              // where this part goes

    // Bytes from the weight's beginning to a group.
    int64_t read(int64_t group) const {
      return form == Form::decoded ? group * from_bytes : packed.first_row(group) * row_bytes;
    }
    int64_t place(int64_t group) const { return form == Form::plain ? read(group) : group * to_bytes; }
    int64_t per_chunk() const { return std::max<int64_t>(1, (int64_t{256} << 10) / (from_bytes + 1)); }
    int64_t chunks() const { return ceil_div(end - begin, per_chunk()); }

    void bring(int64_t chunk) const {
      const int64_t first = begin + chunk * per_chunk(), last = std::min(end, first + per_chunk());
      const auto bytes =
          tensor->bytes.subspan(static_cast<size_t>(read(first)), static_cast<size_t>(read(last) - read(first)));
      std::byte* const at = to + place(first) - place(begin);
      const DType type = source->type;
      check_finite_scales(source->name, type, bytes,
                          form == Form::decoded ? (last - first) * info(type).block : packed.k);
      if (form == Form::decoded)
        decode_row(type, bytes.data(), reinterpret_cast<float*>(at), (last - first) * info(type).block);
      else if (form == Form::rows8)
        pack_groups(packed, tensor->bytes.data(), to - begin * to_bytes, first, last);
      else
        std::copy(bytes.begin(), bytes.end(), at);
      if (form != Form::decoded) source->release(bytes);
    }
  };

  std::byte* target() { return through_ ? staging_[turn_].data() + lead_ : to_; }

  void enlarge(int64_t bytes) {
    finish();
    window_ = bytes;
    if (!through_) return;
    for (PinnedBuffer& staging : staging_) staging = {}, staging = PinnedBuffer(bytes + alignment, *through_);
  }

  void flush() {
    if (used_ == 0) return;
    std::vector<int64_t> ends;  // of the parts' chunks
    for (const Part& part : parts_) ends.push_back((ends.empty() ? 0 : ends.back()) + part.chunks());
    pool_.run(ends.empty() ? 0 : ends.back(), [&](int64_t chunk, int) {
      const auto at = static_cast<size_t>(std::upper_bound(ends.begin(), ends.end(), chunk) - ends.begin());
      parts_[at].bring(at > 0 ? chunk - ends[at - 1] : chunk);
    });
    parts_.clear();
    if (through_) {
      if (copies_) through_->wait();  // the copy of the window before, which the next one is packed over
      through_->upload(to_, target(), used_);
      copies_ = true, turn_ = 1 - turn_, lead_ = (lead_ + used_) % alignment;
    }
    to_ += used_, done_ += used_, used_ = 0;
    if (on_progress_) on_progress_(done_, all_);
  }

  std::byte* to_;  // where the window goes
  const int64_t all_;
  Accelerator* const through_;
  ThreadPool& pool_;
  const OnProgress& on_progress_;
  int64_t window_ = int64_t{32} << 20, used_ = 0, done_ = 0;
  std::vector<Part> parts_;  // of the window
  PinnedBuffer staging_[2];
  int64_t lead_ = 0;  // where the window begins there, so that what it holds is aligned as it will be in its place
  size_t turn_ = 0;
  bool copies_ = false;
};

}  // namespace

int64_t WeightStore::bytes_needed(const std::vector<WeightSource>& sources, DeviceKind device) {
  int64_t bytes = 0;
  for (const WeightSource& source : sources) bytes = checked_add(bytes, device_bytes(source, device));
  return bytes;
}

WeightStore::WeightStore(const std::vector<WeightSource>& sources, const Target& device, ThreadPool& pool,
                         const OnProgress& on_progress)
    : bytes_(bytes_needed(sources, device.kind)) {
  const auto start = Clock::now();
  Accelerator* accelerator = device.accelerator.get();
  const bool unified = accelerator && accelerator->info().unified;
  if (unified) {
    unified_ = PinnedBuffer(bytes_, *accelerator);
  } else {
    buffer_ = Buffer(bytes_, accelerator);
    buffer_.prefer_huge_pages();
  }
  std::byte* to = unified ? unified_.data() : buffer_.data();
  Loader loader(to, bytes_, unified ? nullptr : accelerator, pool, on_progress);
  for (const WeightSource& source : sources) {
    if (device.kind == DeviceKind::reference && !is_vector(source)) {
      HostTensor tensor = source.load();
      check_finite_scales(source.name, source.type, tensor.bytes, tensor.columns());
      views_.push_back(view_of(source, device.kind, const_cast<std::byte*>(tensor.bytes.data())));
      kept_.push_back(std::move(tensor));
      continue;
    }
    const int64_t room = device_bytes(source, device.kind);
    loader.add(source, is_packed(source, device.kind), room);
    views_.push_back(view_of(source, device.kind, to));
    to += room;
  }
  loader.finish();
  seconds_ = seconds_since(start);
}

WeightStore WeightStore::planned(const std::vector<WeightSource>& sources, DeviceKind device) {
  WeightStore store;
  store.bytes_ = bytes_needed(sources, device);
  for (const WeightSource& source : sources) store.views_.push_back(view_of(source, device, nullptr));
  return store;
}

View WeightStore::view_of(const WeightSource& source, DeviceKind device, std::byte* data) {
  const Shape shape = shape_of(source.sizes);
  const DType type = is_vector(source) ? DType::f32 : source.type;
  const Output out = dense(type, shape);
  return {data, type, shape, out.strides, is_packed(source, device) ? Layout::rows8 : Layout::plain};
}

}  // namespace consonant
