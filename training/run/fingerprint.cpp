#include "run/fingerprint.h"

namespace lcp::training {

std::int64_t fingerprint(const std::vector<torch::Tensor>& tensors) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const torch::Tensor& tensor : tensors) {
    const torch::Tensor data = tensor.contiguous();
    const auto* bytes = static_cast<const unsigned char*>(data.const_data_ptr());
    for (std::size_t k = 0; k < data.nbytes(); ++k) hash = (hash ^ bytes[k]) * 0x100000001b3u;
  }
  return static_cast<std::int64_t>(hash);
}

}  // namespace lcp::training
