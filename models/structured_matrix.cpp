#include "lcp/nn/structured_matrix.h"

#include <torch/types.h>

namespace lcp::nn {
namespace {

using torch::Tensor;

// For each entry (j, k) of the upper triangle a matrix [n, n], which is 1 at (j, k), `mirrored` at (k, j) and 0
// elsewhere. The triangle begins at the given diagonal, see torch::triu_indices.
Tensor basis_of(std::int64_t n, std::int64_t diagonal, double mirrored) {
  const Tensor upper = torch::triu_indices(n, n, diagonal);
  const std::int64_t count = upper.size(1);
  Tensor basis = torch::zeros({count, n, n});
  for (std::int64_t i = 0; i < count; ++i) {
    const auto j = upper[0][i].item<std::int64_t>(), k = upper[1][i].item<std::int64_t>();
    basis[i][k][j] = mirrored;
    basis[i][j][k] = 1;
  }
  return basis;
}

Tensor combined(const Tensor& weights, const Tensor& basis) {
  return (weights.unsqueeze(-1).unsqueeze(-1) * basis).sum(-3);
}

const char* name_of(SymmetricBasis basis) {
  switch (basis) {
    case SymmetricBasis::kNone:
      return "none";
    case SymmetricBasis::kDiagonal:
      return "diagonal";
    case SymmetricBasis::kNonnegative:
      return "nonnegative";
  }
  TORCH_CHECK(false, "no such basis");
}

}  // namespace

StructuredMatrixImpl::StructuredMatrixImpl(const StructuredMatrixOptions& options_) : options(options_) {
  TORCH_CHECK(options.size() > 0, "size must be > 0; got ", options.size());
  TORCH_CHECK(options.rank() >= 0, "rank must be >= 0; got ", options.rank());
  StructuredMatrixImpl::reset();
}

void StructuredMatrixImpl::reset() {
  const std::int64_t n = options.size();
  phi = register_parameter("phi", torch::randn({n, options.rank()}));
  antisymmetric_ = register_buffer("antisymmetric_basis", basis_of(n, 1, -1));
  beta = register_parameter("beta", torch::randn({antisymmetric_.size(0)}));
  if (options.basis() == SymmetricBasis::kNone) return;
  const Tensor all = basis_of(n, 0, 1);
  const bool diagonal = options.basis() == SymmetricBasis::kDiagonal;
  symmetric_ = register_buffer("symmetric_basis", diagonal ? torch::eye(n).diag_embed() : all);
  alpha = register_parameter("alpha", torch::full({symmetric_.size(0)}, 0.1));
}

void StructuredMatrixImpl::pretty_print(std::ostream& stream) const {
  stream << "lcp::nn::StructuredMatrix(size=" << options.size() << ", rank=" << options.rank()
         << ", basis=" << name_of(options.basis()) << ")";
}

Tensor StructuredMatrixImpl::value(const Tensor& phi_, const Tensor& beta_, const Tensor& alpha_) const {
  const Tensor gram = (phi_.unsqueeze(-2) * phi_.unsqueeze(-3)).sum(-1);  // phi phi'
  const Tensor M = gram + combined(beta_, antisymmetric_);
  return alpha_.defined() ? M + combined(alpha_.square(), symmetric_) : M;
}

}  // namespace lcp::nn
