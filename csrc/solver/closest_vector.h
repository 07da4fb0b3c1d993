// The closest vector of a lattice.
//
//   [LLL]    Lenstra, Lenstra, Lovasz: Factoring polynomials with rational coefficients, Math. Annalen 261, 1982.
//   [Babai]  Babai: On Lovasz' lattice reduction and the nearest lattice point problem, Combinatorica 6, 1986.
#pragma once

#include <Eigen/Core>

namespace lcp::solver {

/// Integers s for which B s is close to B t: by the nearest plane [Babai] of the basis that [LLL] makes of the columns
/// of B. Rounding t component by component may leave an error larger by any factor where B is ill-conditioned.
///   B: m x k, m >= k; t: k.
Eigen::VectorXd closest_vector(const Eigen::MatrixXd& B, const Eigen::VectorXd& t);

}  // namespace lcp::solver
