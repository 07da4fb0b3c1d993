#include "run/fingerprint.h"

namespace lcp::training {

std::uint64_t hash_of(std::string_view bytes, std::uint64_t hash) {
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3u;
  return hash;
}

std::int64_t fingerprint(const std::vector<torch::Tensor>& tensors) {
  std::uint64_t hash = hash_of("");
  for (const torch::Tensor& tensor : tensors) {
    const torch::Tensor data = tensor.contiguous();
    hash = hash_of({static_cast<const char*>(data.const_data_ptr()), data.nbytes()}, hash);
  }
  return static_cast<std::int64_t>(hash);
}

}  // namespace lcp::training
