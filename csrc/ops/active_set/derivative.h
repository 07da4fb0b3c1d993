// The derivative of a solution whose complementary basis is known.
#pragma once

#include "ops/operator.h"

namespace lcp::ops {

/// Gives z and w, the solution of (M, q) with this basis, their derivative J (dM z + dq) in reverse and in forward
/// mode. Also serves (dz, dw) = J r, whose derivative is J (dM dz + dr). name: the name of the node in the graph.
/// tied_active: whether tied pairs count as w_i = 0 rather than z_i = 0.
void set_derivative(const char* name, const Tensor& M, const Tensor& q, Tensor& z, Tensor& w, const Tensor& basis,
                    bool tied_active, const std::optional<Tensor>& sizes);

}  // namespace lcp::ops
