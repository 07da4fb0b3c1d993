// Rows and columns of like size, by powers of two.
#pragma once

namespace lcp::linalg {

/// Scales A in place to 2^-r_i A_ij 2^-c_j, so that the largest entry of every row and column that is not 0 comes near
/// the largest of A as it was; so r and c do not depend on the scale of A [Ruiz, A scaling algorithm to equilibrate
/// both rows and columns norms in matrices, RAL-TR-2001-034]. Exact, since the factors are powers of two.
///   A: n x n row-major. r, c: n exponents.
void equilibrate(int n, double* A, int* r, int* c);

}  // namespace lcp::linalg
