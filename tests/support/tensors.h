// Tensors of numbers, and numbers of tensors.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

namespace lcp::testing {

inline torch::Tensor number(double x) { return torch::tensor(x, torch::kDouble); }
inline torch::Tensor numbers(const std::vector<double>& x) { return torch::tensor(x, torch::kDouble); }

inline double largest(const torch::Tensor& x) { return x.abs().max().item<double>(); }
inline bool everywhere(const torch::Tensor& mask) { return mask.all().item<bool>(); }
inline std::int64_t count(const torch::Tensor& mask) { return mask.sum().item<std::int64_t>(); }

/// The integers in x.
inline std::vector<std::int64_t> list(const torch::Tensor& x) {
  const torch::Tensor flat = x.contiguous().view(-1);
  return {flat.const_data_ptr<std::int64_t>(), flat.const_data_ptr<std::int64_t>() + flat.numel()};
}

}  // namespace lcp::testing
