// SPDX-License-Identifier: Apache-2.0
#include "formats/gguf_types.hpp"

#include <array>

namespace consonant {

namespace {

struct GgmlType {
  uint32_t number;
  std::string_view name;
  std::optional<DType> type;
};

constexpr std::array<GgmlType, 34> types = {{
    {0, "F32", DType::f32},
    {1, "F16", DType::f16},
    {2, "Q4_0", DType::q4_0},
    {3, "Q4_1", DType::q4_1},
    {6, "Q5_0", DType::q5_0},
    {7, "Q5_1", DType::q5_1},
    {8, "Q8_0", DType::q8_0},
    {9, "Q8_1", {}},
    {10, "Q2_K", DType::q2_k},
    {11, "Q3_K", DType::q3_k},
    {12, "Q4_K", DType::q4_k},
    {13, "Q5_K", DType::q5_k},
    {14, "Q6_K", DType::q6_k},
    {15, "Q8_K", {}},
    {16, "IQ2_XXS", {}},
    {17, "IQ2_XS", {}},
    {18, "IQ3_XXS", {}},
    {19, "IQ1_S", {}},
    {20, "IQ4_NL", DType::iq4_nl},
    {21, "IQ3_S", {}},
    {22, "IQ2_S", {}},
    {23, "IQ4_XS", DType::iq4_xs},
    {24, "I8", DType::i8},
    {25, "I16", DType::i16},
    {26, "I32", DType::i32},
    {27, "I64", DType::i64},
    {28, "F64", DType::f64},
    {29, "IQ1_M", {}},
    {30, "BF16", DType::bf16},
    {34, "TQ1_0", {}},
    {35, "TQ2_0", {}},
    {39, "MXFP4", DType::mxfp4},
    {40, "NVFP4", {}},
    {41, "Q1_0", {}},
}};

struct FileType {
  int64_t number;
  std::string_view name;
};

constexpr std::array<FileType, 34> file_types = {{
    {0, "F32"},     {1, "F16"},     {2, "Q4_0"},       {3, "Q4_1"},       {7, "Q8_0"},     {8, "Q5_0"},
    {9, "Q5_1"},    {10, "Q2_K"},   {11, "Q3_K_S"},    {12, "Q3_K_M"},    {13, "Q3_K_L"},  {14, "Q4_K_S"},
    {15, "Q4_K_M"}, {16, "Q5_K_S"}, {17, "Q5_K_M"},    {18, "Q6_K"},      {19, "IQ2_XXS"}, {20, "IQ2_XS"},
    {21, "Q2_K_S"}, {22, "IQ3_XS"}, {23, "IQ3_XXS"},   {24, "IQ1_S"},     {25, "IQ4_NL"},  {26, "IQ3_S"},
    {27, "IQ3_M"},  {28, "IQ2_S"},  {29, "IQ2_M"},     {30, "IQ4_XS"},    {31, "IQ1_M"},   {32, "BF16"},
    {36, "TQ1_0"},  {37, "TQ2_0"},  {38, "MXFP4_MOE"}, {1024, "guessed"},
}};

const GgmlType* find(uint32_t number) {
  for (const GgmlType& t : types)
    if (t.number == number) return &t;
  return nullptr;
}

}  // namespace

std::optional<DType> dtype_of_ggml(uint32_t number) {
  const GgmlType* found = find(number);
  return found ? found->type : std::nullopt;
}

std::string_view ggml_type_name(uint32_t number) {
  const GgmlType* found = find(number);
  return found ? found->name : std::string_view();
}

std::optional<uint32_t> ggml_type_of(DType type) {
  for (const GgmlType& t : types)
    if (t.type == type) return t.number;
  return std::nullopt;
}

std::string_view file_type_name(int64_t number) {
  for (const FileType& t : file_types)
    if (t.number == number) return t.name;
  return {};
}

}  // namespace consonant
