// SPDX-License-Identifier: Apache-2.0
#include "audio/sndfile_frames.hpp"

#include <sndfile.h>

#include <algorithm>
#include <exception>
#include <vector>

#include "base/error.hpp"

namespace consonant {

namespace {

class SndfileFrames : public FrameSource {
 public:
  explicit SndfileFrames(std::unique_ptr<ByteSource> bytes) : bytes_(std::move(bytes)) {}
  ~SndfileFrames() override {
    if (file_ != nullptr) sf_close(file_);
  }

  // False with the reason if libsndfile doesn't take it; the bytes can be had back then.
  bool open(std::string& refusal) {
    bytes_->rewind();
    SF_INFO info{};
    file_ = sf_open_virtual(callbacks(), SFM_READ, &info, this);
    check();
    if (file_ == nullptr) {
      refusal = sf_strerror(nullptr);
      while (!refusal.empty() && (refusal.back() == '.' || refusal.back() == '\n')) refusal.pop_back();
      return false;
    }
    set_layout(bytes_->name(), info.samplerate, info.channels);
    const bool mpeg = (info.format & SF_FORMAT_TYPEMASK) == SF_FORMAT_MPEG;
    // Streams that don't say how long they are have the largest number there. MPEG's is an estimate, no promise.
    if (info.frames >= 0 && info.frames < SF_COUNT_MAX / 2) frames_ = info.frames;
    if (!mpeg) promised_ = frames_;
    // MPEG's frames borrow bits from those before them: after a jump its decoder complains on stderr.
    can_seek_ = !mpeg && frames_ >= 0;
    return true;
  }
  std::unique_ptr<ByteSource> give_back() { return std::move(bytes_); }

  int64_t read(std::span<float> to) override {
    const int64_t n = sf_readf_float(file_, to.data(), static_cast<int64_t>(to.size()) / channels());
    check();
    return std::max<int64_t>(n, 0);
  }

  int64_t skip(int64_t frames) override {
    if (!can_seek_) return FrameSource::skip(frames);
    const int64_t at = sf_seek(file_, 0, SF_SEEK_CUR);
    const int64_t to = std::min(frames_ - std::max<int64_t>(at, 0), frames);
    const bool moved = at >= 0 && sf_seek(file_, to, SF_SEEK_CUR) == at + to;
    check();
    return moved ? to : FrameSource::skip(frames);
  }

  std::string fault() const override {
    const int error = sf_error(file_);
    return error == SF_ERR_NO_ERROR ? std::string() : sf_error_number(error);
  }

 private:
  static SF_VIRTUAL_IO* callbacks() {
    static SF_VIRTUAL_IO io = {length, seek, read_bytes, write, tell};
    return &io;
  }
  static SndfileFrames& self(void* user) { return *static_cast<SndfileFrames*>(user); }

  static sf_count_t length(void* user) { return self(user).bytes_->size(); }
  static sf_count_t tell(void* user) { return self(user).bytes_->position(); }
  static sf_count_t write(const void*, sf_count_t, void*) { return 0; }
  static sf_count_t seek(sf_count_t offset, int whence, void* user) {
    ByteSource& bytes = *self(user).bytes_;
    const int64_t base = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? bytes.position() : bytes.size();
    int64_t to = 0;
    if (__builtin_add_overflow(base, offset, &to) || to < 0) return -1;
    bytes.seek(to);
    return to;
  }
  // An exception must not pass through C: it is kept, and thrown when libsndfile has returned.
  static sf_count_t read_bytes(void* to, sf_count_t count, void* user) {
    SndfileFrames& frames = self(user);
    if (count <= 0 || frames.thrown_) return 0;
    try {
      return frames.bytes_->read({static_cast<std::byte*>(to), static_cast<size_t>(count)});
    } catch (...) {
      frames.thrown_ = std::current_exception();
      return 0;
    }
  }

  void check() {
    if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
  }

  std::unique_ptr<ByteSource> bytes_;
  SNDFILE* file_ = nullptr;
  bool can_seek_ = false;
  std::exception_ptr thrown_;
};

}  // namespace

std::unique_ptr<FrameSource> open_with_sndfile(std::unique_ptr<ByteSource>& bytes, std::string& refusal) {
  auto frames = std::make_unique<SndfileFrames>(std::move(bytes));
  if (frames->open(refusal)) return frames;
  bytes = frames->give_back();
  return nullptr;
}

}  // namespace consonant
