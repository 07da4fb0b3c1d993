// Checkpoint files: JSON and named tensors. They are plain data, so that reading a file of unknown origin runs no code.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace lcp::training {

/// A file in the safetensors format: the length of the header in eight little-endian bytes; the header, which is JSON
/// and has the type, the shape and the offsets of each tensor; then the bytes of the tensors. `state` is kept
/// as text in the header's "__metadata__".
///
///   https://huggingface.co/docs/safetensors, "Format"
struct Checkpoint {  // NOLINT(bugprone-exception-escape): to move JSON throws nothing
  nlohmann::json state;
  std::map<std::string, torch::Tensor> tensors;  ///< float32, float64, int64 or bool

  std::string encode() const;

  /// What `encode` returned, as the file of that path holds it. Checks every length in it against the length of the
  /// whole. Throws a UsageError that names the file where it is no checkpoint.
  static Checkpoint decode(const std::string& bytes, const std::filesystem::path& path);

  static Checkpoint read(const std::filesystem::path& path);

  /// Throws a UsageError that names the file where the entry `data` of the state is not the fingerprint of the data.
  void require_data(std::int64_t fingerprint, const std::filesystem::path& path) const;
};

/// Throws the UsageError that the file is no checkpoint of this program.
[[noreturn]] void refuse_checkpoint(const std::filesystem::path& path);

/// The hash of the bytes of the tensors, by which a resumed run recognises its data.
std::int64_t fingerprint(const std::vector<torch::Tensor>& tensors);

}  // namespace lcp::training
