// A learned matrix whose structure determines which of its LCPs have a solution.
//
//   [Notes] Pfrommer: LCP Notes, 2019 (unpublished; docs/systems.md), section 3.1.3.
//   [CPS]   Cottle, Pang, Stone: The Linear Complementarity Problem, SIAM, 2009, chapters 3 and 4.
#pragma once

#include <torch/nn/cloneable.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <ostream>

#include "lcp/export.h"

namespace lcp::nn {

/// The symmetric part of a StructuredMatrix, apart from phi phi'.
/// kNone, kDiagonal: M is positive semidefinite; its LCP has a solution wherever some z >= 0 has M z + q >= 0, and
/// Lemke's method finds it [CPS, 4.4].
/// kNonnegative: the basis of [Notes]; M is copositive. Its LCP has a solution if every z >= 0 with M z >= 0 and z'M z
/// = 0 has q'z >= 0 [CPS, 3.8.6]. Not every feasible q meets this condition: M = [0 1; 1 0], q = (-1, 1) has no
/// solution.
enum class SymmetricBasis { kNone, kDiagonal, kNonnegative };

struct StructuredMatrixOptions {
  explicit StructuredMatrixOptions(std::int64_t size) : size_(size) {}

  TORCH_ARG(std::int64_t, size);      ///< n
  TORCH_ARG(std::int64_t, rank) = 1;  ///< columns of phi
  TORCH_ARG(SymmetricBasis, basis) = SymmetricBasis::kNone;
};

/// M = phi phi' + sum_i alpha_i^2 S_i + sum_i beta_i A_i, [n, n] [Notes, 3.1.3]. With E_jk, which is 1 at (j, k) and 0
/// elsewhere, S_i = E_jj for kDiagonal; kNonnegative adds E_jk + E_kj for j < k. A_i = E_jk - E_kj for j < k. Both are
/// in the order of the rows of the upper triangle. A sliding block has phi = (-1, 1, 0), alpha = 0, beta = (0, 1, 1).
class LCP_API StructuredMatrixImpl : public torch::nn::Cloneable<StructuredMatrixImpl> {
 public:
  /// Throws c10::Error where an option is out of its range.
  explicit StructuredMatrixImpl(const StructuredMatrixOptions& options);

  void reset() override;
  void pretty_print(std::ostream& stream) const override;

  torch::Tensor forward() { return value(phi, beta, alpha); }  ///< M, [n, n]

  /// M, [..., n, n], for other parameters than the matrix's own: phi [..., n, rank], beta and alpha [..., their
  /// number].
  torch::Tensor value(const torch::Tensor& phi, const torch::Tensor& beta, const torch::Tensor& alpha) const;

  StructuredMatrixOptions options;
  torch::Tensor phi;    ///< [n, rank], at first normal random numbers
  torch::Tensor alpha;  ///< [number of S_i], at first 0.1; undefined for kNone
  torch::Tensor beta;   ///< [n (n - 1) / 2], at first normal random numbers

 private:
  torch::Tensor symmetric_;      // [number of S_i, n, n]
  torch::Tensor antisymmetric_;  // [n (n - 1) / 2, n, n]
};

TORCH_MODULE(StructuredMatrix);

}  // namespace lcp::nn
