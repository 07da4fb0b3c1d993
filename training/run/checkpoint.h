// Numbers and named tensors in one file, which is read as data: reading it runs no code, whoever wrote it.
#pragma once

#include <torch/types.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace lcp::training {

/// A file in the safetensors format: eight bytes with the length of a header, little-endian; the header, JSON, which
/// has the type, the shape and the place of each tensor; the bytes of the tensors, one after another. `state` is kept
/// as text in the header's "__metadata__".
///
///   https://huggingface.co/docs/safetensors, "Format"
struct Checkpoint {
  nlohmann::json state;
  std::map<std::string, torch::Tensor> tensors;  ///< float32, float64, int64 or bool

  std::string encode() const;

  /// Reads a file whose every length is checked against the file's. Throws a UsageError that names it.
  static Checkpoint read(const std::filesystem::path& path);
};

}  // namespace lcp::training
