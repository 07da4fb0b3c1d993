#include "lcp/nn/structured_matrix.h"

#include <torch/types.h>

#include "models/formulas.h"

namespace lcp::nn {
namespace {

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
  const auto [antisymmetric, symmetric] = structured_bases(n, name_of(options.basis()));
  phi = register_parameter("phi", torch::randn({n, options.rank()}));
  antisymmetric_ = register_buffer("antisymmetric_basis", antisymmetric);
  beta = register_parameter("beta", torch::randn({antisymmetric_.size(0)}));
  if (!symmetric.defined()) return;
  symmetric_ = register_buffer("symmetric_basis", symmetric);
  alpha = register_parameter("alpha", torch::full({symmetric_.size(0)}, 0.1));
}

void StructuredMatrixImpl::pretty_print(std::ostream& stream) const {
  stream << "lcp::nn::StructuredMatrix(size=" << options.size() << ", rank=" << options.rank()
         << ", basis=" << name_of(options.basis()) << ")";
}

torch::Tensor StructuredMatrixImpl::value(const torch::Tensor& phi_, const torch::Tensor& beta_,
                                          const torch::Tensor& alpha_) const {
  return structured_matrix(phi_, beta_, alpha_, antisymmetric_, symmetric_);
}

}  // namespace lcp::nn
