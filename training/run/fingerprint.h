// A hash by which a resumed run recognises its data.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

namespace lcp::training {

/// The hash FNV-1a of the bytes of the tensors.
std::int64_t fingerprint(const std::vector<torch::Tensor>& tensors);

}  // namespace lcp::training
