// lcp::solve and lcp::solve_mixed.
#pragma once

#include "lcp/ties.h"
#include "ops/by_size.h"

namespace lcp::ops {

/// The flags of lcp::solve, see lcp/solve.h.
struct SolveFlags {
  const std::optional<Tensor>& guess;
  std::string_view method;
  std::string_view ties;
  double kappa;
  std::optional<double> tolerance;
  std::optional<std::int64_t> max_pivots;
};

void check_method(std::string_view name, const Value& method);
void check_ties(std::string_view name, const Value& ties);
/// name: one that check_ties allows.
Ties ties_named(std::string_view name);
/// Checks of every solve: kappa > 0 needs ties = "inactive".
void check_solve(const Call& call);
void check_num_equations(const Call& call);
/// Checks of lcp::_solve_with_basis: also num_equations and the size of the guess.
void check_solve_with_basis(const Call& call);

inline constexpr Argument kMethod = flag("str method=\"auto\"", check_method);
inline constexpr Argument kTies = flag("str ties=\"inactive\"", check_ties);
inline constexpr Argument kKappa = flag("float kappa=0.0", check_nonnegative);
inline constexpr Argument kTolerance = flag("float? tolerance=None", check_positive);
inline constexpr Argument kMaxPivots = flag("int? max_pivots=None", check_count);

inline constexpr Operator kSolve("solve", Operator::Kind::kDifferentiable,
                                 {matrix("Tensor M"), vector("Tensor q"), kSizes, vector("Tensor? guess=None"), kMethod,
                                  kTies, kKappa, kTolerance, kMaxPivots},
                                 {{"z", "n"}, {"w", "n"}, {"status", "", at::kChar}}, check_solve);

inline constexpr Operator kSolveMixed("solve_mixed", Operator::Kind::kComposite,
                                      {tensor("Tensor A", "k k"), tensor("Tensor B", "k n"), tensor("Tensor C", "n k"),
                                       matrix("Tensor M"), tensor("Tensor p", "k"), vector("Tensor q"),
                                       vector("Tensor? guess=None"), kMethod, kTies, kKappa, kTolerance, kMaxPivots},
                                      {{"x", "k"}, {"z", "n"}, {"w", "n"}, {"status", "", at::kChar}}, check_solve);

/// The common form of lcp::solve and lcp::solve_mixed: the first num_equations rows of w = M z + q are equations w_i =
/// 0 with z_i of any sign. `guess` is for the other unknowns. All derivatives use the complementary basis that is
/// returned, see solver/pair_states.h. The basis is found where a derivative or needs_basis asks for it, else its
/// entries are all -1. sizes are for problems without equations.
inline constexpr Operator kSolveWithBasis(
    "_solve_with_basis", Operator::Kind::kDifferentiable,
    {matrix("Tensor M"), vector("Tensor q"), flag("int num_equations"), kSizes, tensor("Tensor? guess=None", "p"),
     kMethod, kTies, kKappa, kTolerance, kMaxPivots, flag("bool needs_basis=False")},
    {{"z", "n"}, {"w", "n"}, {"status", "", at::kChar}, {"basis", "n", at::kChar}}, check_solve_with_basis);

inline const auto& solve_op() {
  return handle<Tensors<3>(const Tensor& M, const Tensor& q, const std::optional<Tensor>& sizes,
                           const std::optional<Tensor>& guess, std::string_view method, std::string_view ties,
                           double kappa, std::optional<double> tolerance, std::optional<std::int64_t> max_pivots),
                kSolve>();
}
inline const auto& solve_mixed_op() {
  return handle<Tensors<4>(const Tensor& A, const Tensor& B, const Tensor& C, const Tensor& M, const Tensor& p,
                           const Tensor& q, const std::optional<Tensor>& guess, std::string_view method,
                           std::string_view ties, double kappa, std::optional<double> tolerance,
                           std::optional<std::int64_t> max_pivots),
                kSolveMixed>();
}
inline const auto& solve_with_basis_op() {
  return handle<Tensors<4>(const Tensor& M, const Tensor& q, std::int64_t num_equations,
                           const std::optional<Tensor>& sizes, const std::optional<Tensor>& guess,
                           std::string_view method, std::string_view ties, double kappa,
                           std::optional<double> tolerance, std::optional<std::int64_t> max_pivots, bool needs_basis),
                kSolveWithBasis>();
}

}  // namespace lcp::ops
