// The operators' schemas, the checks that every backend shares, and typed handles to call them through the dispatcher.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/SymIntArrayRef.h>
#include <c10/util/DimVector.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <tuple>

namespace lcp::ops {

using at::Tensor;
using Two = std::tuple<Tensor, Tensor>;
using Three = std::tuple<Tensor, Tensor, Tensor>;
using Four = std::tuple<Tensor, Tensor, Tensor, Tensor>;

/// What lcp::solve and lcp::solve_mixed take beside the problem.
struct SolveArguments {
  const std::optional<Tensor>& guess;
  std::string_view method;
  std::string_view ties;
  double kappa;
  std::optional<double> tolerance;
  std::optional<std::int64_t> max_pivots;
};

/// Refuses sparse tensors before the dispatcher does, in less telling words.
void check_layout(const char* name, const Tensor& x);
/// That x is [..., n, n], float32 or float64; and that it has the dtype and device of `first`.
void check_matrix(const char* name, const Tensor& x);
void check_like(const char* name, const Tensor& x, const char* first_name, const Tensor& first);

/// The arguments of lcp::solve, and those of lcp::_solve_blocks, whose first num_equations rows are equations. Throws
/// c10::Error; returns the broadcast batch dimensions.
c10::SymDimVector check_solve(const Tensor& M, const Tensor& q, std::int64_t num_equations,
                              const SolveArguments& arguments);

struct Named {
  const char* name;
  const Tensor& tensor;
};

/// `batch`, that of tensors from `first` on, with the batch dimensions of x. Throws c10::Error where they do not
/// broadcast.
c10::SymDimVector broadcast(c10::SymIntArrayRef batch, const Named& first, const Named& x, std::int64_t core_dims);

/// Matrices [..., n, n], the first of which gives n, dtype and device, and vectors [..., n]. Throws c10::Error; returns
/// the broadcast batch dimensions.
c10::SymDimVector check_shapes(std::initializer_list<Named> matrices, std::initializer_list<Named> vectors);

/// M and vectors as in check_shapes, and a complementary basis [..., n], int8. Throws c10::Error; returns the broadcast
/// batch dimensions.
c10::SymDimVector check_derivative(const Tensor& M, const Tensor& basis, std::initializer_list<Named> vectors);

void check_num_equations(std::int64_t num_equations, const Tensor& M);
void check_tolerance(const std::optional<double>& tolerance);

/// The shape [batch..., n] with n from M.
c10::SymDimVector vector_shape(const c10::SymDimVector& batch, const Tensor& M);

// Handles to the operators: `call` goes through the whole dispatcher, `redispatch` to the keys that are left.
template <class Signature>
using Handle = c10::TypedOperatorHandle<Signature>;

template <class Op>
struct Find;
template <class Signature>
struct Find<Handle<Signature>> {
  static Handle<Signature> op(const char* name) {
    return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Signature>();
  }
};

// Each handle is looked up once.
#define LCP_FIND(Type, function, name)                   \
  const Type& function() {                               \
    static const Type op = Find<Type>::op("lcp::" name); \
    return op;                                           \
  }

using SolveOp = Handle<Three(const Tensor& M, const Tensor& q, const std::optional<Tensor>& guess,
                             std::string_view method, std::string_view ties, double kappa,
                             std::optional<double> tolerance, std::optional<std::int64_t> max_pivots)>;
const SolveOp& solve_op();  ///< see lcp/solve.h

using SolveMixedOp = Handle<std::tuple<Tensor, Tensor, Tensor, Tensor>(
    const Tensor& A, const Tensor& B, const Tensor& C, const Tensor& M, const Tensor& p, const Tensor& q,
    const std::optional<Tensor>& guess, std::string_view method, std::string_view ties, double kappa,
    std::optional<double> tolerance, std::optional<std::int64_t> max_pivots)>;
const SolveMixedOp& solve_mixed_op();  ///< see lcp/solve_mixed.h

// The same with H = [A B; C M] and h = (p, q), whose first num_equations rows are equations, for v = (x, z) and
// y = (0, w). It also returns the complementary basis, [..., n] int8, the values of csrc/solver/pair_states.h, with
// which every derivative is taken.
using SolveBlocksOp =
    Handle<Four(const Tensor& H, const Tensor& h, std::int64_t num_equations, const std::optional<Tensor>& guess,
                std::string_view method, std::string_view ties, double kappa, std::optional<double> tolerance,
                std::optional<std::int64_t> max_pivots)>;
const SolveBlocksOp& solve_blocks_op();

using CertifyOp = Handle<std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor>(
    const Tensor& M, const Tensor& q, const Tensor& z, std::optional<double> tolerance)>;
const CertifyOp& certify_op();  ///< see lcp/certify.h

using DirectionalDerivativeOp =
    Handle<Three(const Tensor& M, const Tensor& q, const Tensor& z, const Tensor& dM, const Tensor& dq)>;
const DirectionalDerivativeOp& directional_derivative_op();  ///< see lcp/directional_derivative.h

using GradientRadiusOp = Handle<Tensor(const Tensor& M, const Tensor& q, const Tensor& z, const Tensor& dq)>;
const GradientRadiusOp& gradient_radius_op();  ///< see lcp/directional_derivative.h

// Copies of z and w, the solution for M and q, with the derivative of one piece alone. An operator, so that under
// torch.func the derivatives of every level are of that piece.
using PieceOp = Handle<Two(const Tensor& M, const Tensor& q, const Tensor& z, const Tensor& w, const Tensor& basis,
                           bool tied_active)>;
const PieceOp& piece_op();

// The linear maps J and J' of csrc/solver/active_set.h. Every derivative of a solve, of any order, is made of them:
//   d(z, w) = J (dM z + dq);  d(J r) = J (dM (J r)_z + dr);  d(J' g) = J' (dg_z + dM' t, dg_w),  t = J' g.
using TangentOp = Handle<Two(const Tensor& M, const Tensor& basis, const Tensor& r, bool tied_active)>;
const TangentOp& tangent_op();

using AdjointOp =
    Handle<Tensor(const Tensor& M, const Tensor& basis, const Tensor& g_z, const Tensor& g_w, bool tied_active)>;
const AdjointOp& adjoint_op();

// The point z_i w_i = kappa of csrc/solver/central_path.h near a solution z_0, NaN where none is found; 0 = w_i for
// i < num_equations.
using PathPointOp =
    Handle<Two(const Tensor& M, const Tensor& q, const Tensor& z_0, std::int64_t num_equations, double kappa)>;
const PathPointOp& path_point_op();

// The linear maps K and K' of csrc/solver/path_derivative.h. Every derivative of such a point is made of them:
//   d K(r, s) = K (dM x + dr, ds - da x - db y),  (x, y) = K(r, s);
//   d K'(g) = K' (dg_x + dM' t_r - da t_s, dg_y - db t_s),  (t_r, t_s) = K'(g).
using PathTangentOp = Handle<Two(const Tensor& M, const Tensor& a, const Tensor& b, const Tensor& r, const Tensor& s)>;
const PathTangentOp& path_tangent_op();

using PathAdjointOp =
    Handle<Two(const Tensor& M, const Tensor& a, const Tensor& b, const Tensor& g_x, const Tensor& g_y)>;
const PathAdjointOp& path_adjoint_op();

// t x' summed over the batch dimensions that `size` = [..., n, m] lacks or has as 1, in an order that does not depend
// on the number of threads. A NaN in x counts as 0: it is the z of an unsolved element, whose t says what to do.
using SumOuterOp = Handle<Tensor(const Tensor& t, const Tensor& x, c10::SymIntArrayRef size)>;
const SumOuterOp& sum_outer_op();

}  // namespace lcp::ops
