// Rows and columns of like size, by powers of two.
#pragma once

namespace lcp::linalg {

/// Scales A in place to 2^-r_i A_ij 2^-c_j. The largest entry of every row and column that is not 0 comes near the
/// largest entry of the original A, so that r and c do not depend on the scale of A [Ruiz, A scaling algorithm to
/// equilibrate both rows and columns norms in matrices, RAL-TR-2001-034]. Exact, since the factors are powers of two.
///   A: n x n row-major. r, c: n exponents.
void equilibrate(int n, double* A, int* r, int* c);

/// Scales A in place to 2^-r_i A_ij 2^-c_j. r_i + c_j is the least-squares fit of log2 |A_ij| over the entries that are
/// not 0 [Curtis, Reid, On the automatic scaling of matrices for Gaussian elimination, 1972]. The result hardly depends
/// on the units of rows and columns, while equilibrate() has many results. Allocates.
void remove_units(int n, double* A, int* r, int* c);

}  // namespace lcp::linalg
