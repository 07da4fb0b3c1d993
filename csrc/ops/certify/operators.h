// Operators on a known solution: lcp::certify, lcp::directional_derivative and lcp::gradient_radius.
#pragma once

#include "ops/solve/operators.h"

namespace lcp::ops {

/// See lcp/certify.h.
inline constexpr Operator kCertify(
    "certify", Operator::Kind::kNotDifferentiable,
    {matrix("Tensor M"), vector("Tensor q"), vector("Tensor z"), kSizes, kTolerance},
    {{"residual", ""}, {"margin", ""}, {"condition", ""}, {"rank", "", at::kLong}, {"ties", "n", at::kBool}});

/// See lcp/directional_derivative.h.
inline constexpr Operator kDirectionalDerivative("directional_derivative", Operator::Kind::kNotDifferentiable,
                                                 {matrix("Tensor M"), vector("Tensor q"), vector("Tensor z"),
                                                  matrix("Tensor dM"), vector("Tensor dq")},
                                                 {{"dz", "n"}, {"dw", "n"}, {"status", "", at::kChar}});

/// See lcp/directional_derivative.h.
inline constexpr Operator kGradientRadius("gradient_radius", Operator::Kind::kNotDifferentiable,
                                          {matrix("Tensor M"), vector("Tensor q"), vector("Tensor z"),
                                           vector("Tensor dq")},
                                          {{"radius", ""}});

inline const auto& certify_op() {
  return handle<Tensors<5>(const Tensor& M, const Tensor& q, const Tensor& z, const std::optional<Tensor>& sizes,
                           std::optional<double> tolerance),
                kCertify>();
}
inline const auto& directional_derivative_op() {
  return handle<Tensors<3>(const Tensor& M, const Tensor& q, const Tensor& z, const Tensor& dM, const Tensor& dq),
                kDirectionalDerivative>();
}
inline const auto& gradient_radius_op() {
  return handle<Tensor(const Tensor& M, const Tensor& q, const Tensor& z, const Tensor& dq), kGradientRadius>();
}

}  // namespace lcp::ops
