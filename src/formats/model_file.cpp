// SPDX-License-Identifier: Apache-2.0
#include "formats/model_file.hpp"

#include <system_error>

#include "base/error.hpp"
#include "formats/ct2.hpp"
#include "formats/ggml.hpp"
#include "formats/gguf.hpp"
#include "formats/hf_folder.hpp"
#include "formats/hf_qwen3_tts.hpp"
#include "formats/latent.hpp"
#include "formats/mapped_file.hpp"
#include "formats/silero.hpp"

namespace consonant {

namespace {

// The first bytes as a person can read them: `"PK\x03\x04"`.
std::string first_bytes(const MappedFile& file) {
  std::string out = "\"";
  for (const char c : file.text().substr(0, 4)) {
    if (c >= ' ' && c <= '~' && c != '"' && c != '\\')
      out += c;
    else
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return out + '"';
}

ModelFile canonical(ModelFile file) {
  split_latent_projections(file);
  complete_qwen3_tts(*file.meta);
  return file;
}

}  // namespace

const StoredTensor* ModelFile::find(std::string_view name) const {
  for (const StoredTensor& t : tensors)
    if (t.name == name) return &t;
  return nullptr;
}

ModelFile open_model(const std::filesystem::path& path) {
  if (std::error_code ignored; std::filesystem::is_directory(path, ignored)) {
    if (is_ct2_folder(path)) return open_ct2_folder(path);
    if (is_hf_folder(path)) return canonical(open_hf_folder(path));
    bad_input("{}: is a folder, and holds neither config.json of a Hugging Face model nor model.bin of CTranslate2",
              path.string());
  }
  const auto file = MappedFile::open(path);
  if (is_gguf(*file)) return canonical(open_gguf(path));
  if (is_ggml(*file)) return open_ggml(path);
  if (is_ct2(*file)) {
    if (path.filename() != "model.bin")
      bad_input("{}: is a file of CTranslate2; it has to be named model.bin, with config.json beside it",
                path.string());
    return open_ct2_folder(path.parent_path().empty() ? "." : path.parent_path());
  }
  if (is_silero_vad(*file)) return open_silero_vad(path);
  if (path.extension() == ".safetensors")
    bad_input("{}: holds tensors alone; name the folder, which holds config.json too", path.string());
  bad_input(
      "{}: is no model that can be read: a GGUF file begins with \"GGUF\", one of whisper.cpp with \"lmgg\", this one "
      "with {}",
      path.string(), first_bytes(*file));
}

}  // namespace consonant
