// A mixed LCP without its equations: principal pivots on them.
#pragma once

#include <vector>

namespace lcp::solver {

/// Solves the equations of
///
///   0 = A x + B z + p,   w = C x + M z + q,   0 <= z  perp  w >= 0,
///
/// H = [A B; C M] and h = (p, q), for x by pivots on the table (H, h). The pivot is the largest of the remaining
/// entries of A. If only small ones remain, a block pivot is taken on the equation i, the pair j and the unknown l with
/// the largest min(|B_ij|, |C_jl|); w_j becomes independent and z_j dependent [Cottle, Pang, Stone, 2009, sec. 2.3].
///
/// An LCP in the pairs remains, with z and w of some pairs exchanged; it is semidefinite where H is. Equations that no
/// pivot solves, such as those of redundant joints, stay, together with as many unknowns x. Then x = x+ - x-, and each
/// equation is two inequalities. Allocates in the constructor.
class Elimination {
 public:
  Elimination(int k, int n);

  struct Pivoting {
    double negligible;  ///< an entry that is the sum of terms this much larger than itself is round-off, and set to 0
    double smallest;    ///< an entry of A this much smaller than the best block pivot is not used before it
    bool bounds_first;  ///< begins with block pivots on the pairs that bound one unknown, w_j = +-x_l + q_j
  };

  /// H: (k + n)^2 row-major, h: k + n, both of about unit size in every row and column.
  void run(const double* H, const double* h, const Pivoting& pivoting);

  int left() const { return static_cast<int>(equations_.size()); }  ///< equations that no pivot solves
  int order() const { return n_ + 2 * left(); }                     ///< the order of the LCP that remains

  /// The LCP that remains: M: order()^2 row-major, q: order(). Its last n pairs are those of H.
  void reduced(double* M, double* q) const;
  /// z: the guess of the LCP that remains, whose positive entries propose the active set that those of `guess`, n,
  /// propose.
  void propose(const double* guess, double* z) const;
  /// (x, z) of a solution of the LCP that remains. z, w: order(). v: k + n.
  void expand(const double* z, const double* w, double* v) const;

  /// Whether z_j and w_j are exchanged.
  bool exchanged(int j) const { return exchanged_[j] != 0; }

 private:
  struct Pivot {
    double size = 0;
    int equation = 0, unknown = 0;  // positions in equations_ and unknowns_
    int pair = -1;
  };
  Pivot best_entry() const;
  bool is_bound(int j) const;
  Pivot best_block(bool only_bounds) const;
  void exchange(int r, int c);
  void drop(int c);

  double& entry(int i, int j) { return table_[static_cast<std::size_t>(i) * (size_ + 1) + j]; }
  double entry(int i, int j) const { return table_[static_cast<std::size_t>(i) * (size_ + 1) + j]; }

  int k_, n_, size_;
  double negligible_ = 0;
  std::vector<double> table_;                      // size x (size + 1): the dependent variables
  std::vector<double> terms_;                      // for each entry, the size of the terms whose sum it is
  std::vector<int> equations_, unknowns_;          // the equations and unknowns that are not eliminated yet
  std::vector<int> pair_row_, pair_column_;        // the row and the column of the two variables of a pair
  std::vector<int> unknown_row_, unknown_column_;  // the row or the column of x_l; the other one is -1
  std::vector<unsigned char> exchanged_;
};

}  // namespace lcp::solver
