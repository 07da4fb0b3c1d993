// Lemke's pivots on a tableau that is stored by columns: each pivot updates one column after another by a multiple of
// the driving one, and the ratio test reads the driving column as a vector.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "interrupt/checkpoint.h"
#include "simd/vectors.h"
#include "solver/kernels.h"
#include "solver/termination.h"

namespace lcp::solver::LCP_ISA {

using namespace simd::LCP_ISA;

// Bit l: x[l] <= y[l].
LCP_INLINE inline std::uint64_t bits_of_ordered(Vector x, Vector y) {
#if defined __AVX512F__
  return _mm512_cmp_pd_mask(static_cast<__m512d>(x), static_cast<__m512d>(y), _CMP_LE_OQ);
#elif defined __AVX2__
  const __m256d ordered = _mm256_cmp_pd(static_cast<__m256d>(x), static_cast<__m256d>(y), _CMP_LE_OQ);
  return static_cast<std::uint64_t>(_mm256_movemask_pd(ordered));
#else
  std::uint64_t bits = 0;
  for (int l = 0; l < kWidth; ++l) bits |= static_cast<std::uint64_t>(x[l] <= y[l]) << l;
  return bits;
#endif
}

template <int step>
struct Swap {
  static constexpr int pick(int l) { return l ^ step; }
};

// Combines all lanes of x; every lane of the result has the outcome.
template <class Combine>
LCP_INLINE inline Vector in_all_lanes(Vector x, const Combine& combine) {
  unroll<std::countr_zero(static_cast<unsigned>(kWidth))>([&](auto k) LCP_INLINE_LAMBDA {
    const auto native = std::bit_cast<Native<double>>(x);
    x = combine(x, std::bit_cast<Vector>(shuffle<double>(native, native, Swap<(kWidth >> (k + 1))>{})));
  });
  return x;
}

// A column of the tableau: a copy in registers if its number of vectors is a constant, else a reference to memory.
template <int vectors>
class Column {
 public:
  LCP_INLINE explicit Column(const double* p) {
    unroll<vectors>([&](auto v) LCP_INLINE_LAMBDA { x_[v] = load_aligned(p + v * kWidth); });
  }
  LCP_INLINE Vector operator[](int v) const { return x_[v]; }
  LCP_INLINE void set(int v, Vector x) { x_[v] = x; }

 private:
  Vector x_[vectors];
};
template <>
class Column<0> {
 public:
  LCP_INLINE explicit Column(double* p) : p_(p) {}
  LCP_INLINE Vector operator[](int v) const { return load_aligned(p_ + v * kWidth); }
  LCP_INLINE void set(int v, Vector x) { store_aligned(x, p_ + v * kWidth); }

 private:
  double* p_;
};

// vectors: the number of vectors in a column; 0: as many as the stride says.
template <int vectors>
class LemkePivots {
  static constexpr bool kInRegisters = vectors > 0;
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();

 public:
  LCP_INLINE LemkePivots(const LemkeTableau& tableau, double pivot_tolerance, double tie_tolerance)
      : n_(tableau.n),
        stride_(tableau.stride),
        columns_(tableau.columns),
        reciprocals_(tableau.scratch),
        ratios_(tableau.scratch + tableau.stride),
        pivot_tolerance_(pivot_tolerance),
        tie_tolerance_(tie_tolerance),
        driving_(column(n_)) {}

  LCP_INLINE Termination run(LemkeTableau& tableau, const LemkeProblem& problem, std::int64_t max_pivots) {
    tableau.pivots = 0;
    if (max_pivots <= 0) return Termination::kBudget;
    int* const row_variable = tableau.row_variable;
    int* const complement_column = tableau.complement_column;
    load(problem);
    const int artificial_row = first_row();
    if (!is_row(artificial_row)) return Termination::kFailed;
    int r = artificial_row;  // the artificial variable stays basic in this row until it leaves
    int c = n_;
    int entering = 2 * n_;
    int last_column = n_;
    [[maybe_unused]] interrupt::Pace pace;
    for (std::int64_t pivots = 1;; ++pivots) {
      if constexpr (!kInRegisters) pace.spend(n_ * stride_);
      prepare(r);
      const int left = row_variable[r];
      const int next = complement_column[r];
      row_variable[r] = entering;
      complement_column[r] = last_column;
      tableau.pivots = pivots;
      if (pivots == 1) {
        load_matrix(problem.M, problem.unit);
        update(column(n_ + 1));
        update(column(n_ + 2));
        column(n_ + 1)[r] = -kInfinity;
        finish(c);
        driving_ = Column<vectors>(column(next));
        r = ratio_test(driving_, Column<vectors>(column(n_ + 2)), Column<vectors>(column(n_ + 1)));
      } else if (r == artificial_row) {  // the last pivot: the solution is read from the column of q alone
        update(column(n_ + 2));
        tableau.last_row = r;
        tableau.last_column = c;
        return Termination::kCandidate;
      } else {
        // The columns that the next ratio test reads are updated first, so that the processor can begin with it while
        // it updates the others.
        const Column<vectors> next_driving = after(next);
        const Column<vectors> q = after(n_ + 2);
        const Column<vectors> perturbation = after(n_ + 1);
        const int blocking = ratio_test(next_driving, q, perturbation);
        if constexpr (kInRegisters) {
          put_column(q, n_ + 2);
          put_column(perturbation, n_ + 1);
        }
        double* const end = column(n_ + 1);
        for (double* x = columns_; x < end; x += stride_) {
          if (!kInRegisters && (x == column(c) || x == column(next))) continue;
          update(x);
        }
        finish(c);
        driving_ = next_driving;
        r = blocking;
      }
      if (!is_row(r)) return Termination::kFailed;
      if (pivots >= max_pivots) return Termination::kBudget;
      entering = left < n_ ? left + n_ : left - n_;
      last_column = c;
      c = next;
    }
  }

 private:
  // Whether a ratio test selected a row: none where nothing blocks, and neither where the tableau has overflown.
  LCP_INLINE bool is_row(int r) const { return static_cast<unsigned>(r) < static_cast<unsigned>(n_); }
  LCP_INLINE double* column(int j) const { return columns_ + j * stride_; }
  // Calls use(v) for each vector of a column.
  template <class Use>
  LCP_INLINE void each(const Use& use) const {
    if constexpr (kInRegisters) {
      unroll<vectors>(use);
    } else {
      const int count = static_cast<int>(stride_) / kWidth;
      for (int v = 0; v < count; ++v) use(v);
    }
  }
  LCP_INLINE void put_column(const Column<vectors>& x, int j) const {
    each([&](auto v) LCP_INLINE_LAMBDA { store_aligned(x[v], column(j) + v * kWidth); });
  }
  // Vector v of n numbers, with zeros behind them.
  LCP_INLINE Vector part(const double* x, int v) const {
    const int rest = n_ - v * kWidth;
    return rest >= kWidth ? get(x + v * kWidth) : rest > 0 ? get(x + v * kWidth, rest) : Vector(0);
  }

  LCP_INLINE void load(const LemkeProblem& problem) {
    Vector largest = 0;
    each([&](auto v) LCP_INLINE_LAMBDA {
      const Vector q = part(problem.q, v);
      largest = stdx::max(largest, stdx::abs(q));
      store_aligned(part(problem.cover, v), column(n_) + v * kWidth);
      store_aligned(part(problem.perturbation, v), column(n_ + 1) + v * kWidth);
      store_aligned(q, column(n_ + 2) + v * kWidth);
    });
    driving_ = Column<vectors>(column(n_));
    small_ratio_ = 1e-3 * in_all_lanes(largest, [](Vector x, Vector y) LCP_INLINE_LAMBDA { return stdx::max(x, y); });
  }

  // Transposes the rows of unit M into columns, and applies the first pivot to them on the way.
  LCP_INLINE void load_matrix(const double* M, double unit) {
    const double of_pivot_row = minus_inverse_ * unit;
    const double* const pivot_row = M + static_cast<std::ptrdiff_t>(r_) * n_;
    for (int j = 0; j < n_; j += kWidth) {
      const int columns = n_ - j < kWidth ? n_ - j : kWidth;
      each([&](auto v) LCP_INLINE_LAMBDA {
        Native<double> x[kWidth];
        const int i = v * kWidth;
        const double* const block = M + static_cast<std::ptrdiff_t>(i) * n_ + j;
        const auto put_updated = [&](int k) LCP_INLINE_LAMBDA {
          const Vector multiple = of_pivot_row * pivot_row[j + k];
          store_aligned(updated(std::bit_cast<Vector>(x[k]) * unit, v, multiple), column(j + k) + i);
        };
        if (columns == kWidth && i + kWidth <= n_) {
          for (int k = 0; k < kWidth; ++k) x[k] = read<double>(block + static_cast<std::ptrdiff_t>(k) * n_);
          transpose<double>(x);
          for (int k = 0; k < kWidth; ++k) put_updated(k);
        } else {
          for (int k = 0; k < kWidth; ++k) {
            x[k] = std::bit_cast<Native<double>>(i + k < n_ ? get(block + static_cast<std::ptrdiff_t>(k) * n_, columns)
                                                            : Vector(0));
          }
          transpose<double>(x);
          for (int k = 0; k < columns; ++k) put_updated(k);
        }
      });
      if constexpr (!kInRegisters) {
        for (int k = j; k < j + columns; ++k) column(k)[r_] = of_pivot_row * pivot_row[k];
      }
    }
  }

  // The row of the first pivot: that with the smallest q_i / d_i, and of equal ones that with the smallest
  // perturbation.
  LCP_INLINE int first_row() {
    Column<vectors> ratio(ratios_);
    Vector least = kInfinity;
    each([&](auto v) LCP_INLINE_LAMBDA {
      const Vector d = driving_[v];
      const Vector reciprocal = 1.0 / d;
      Vector x = kInfinity;
      stdx::where(d > Vector(0), x) = load_aligned(column(n_ + 2) + v * kWidth) * reciprocal;
      store_aligned(reciprocal, reciprocals_ + v * kWidth);
      ratio.set(v, x);
      least = stdx::min(least, x);
    });
    const int r = least_perturbed(ratio, least_lane(least), Column<vectors>(column(n_ + 1)));
    each([&](auto v)
             LCP_INLINE_LAMBDA { store_aligned(-load_aligned(reciprocals_ + v * kWidth), reciprocals_ + v * kWidth); });
    return r;
  }

  // Sets up the update of columns by a pivot in row r of the driving column; reciprocals_ holds -1 / its entries.
  LCP_INLINE void prepare(int r) {
    r_ = r;
    minus_inverse_ = reciprocals_[r];
    if constexpr (kInRegisters) {
      const Vector row = r;
      unroll<vectors>([&](auto v) LCP_INLINE_LAMBDA {
        is_r_[v] = Vector([v](auto l) LCP_INLINE_LAMBDA { return v * kWidth + static_cast<int>(l); }) == row;
        Vector factor = driving_[v];
        stdx::where(is_r_[v], factor) = 1;
        driving_.set(v, factor);
      });
    }
  }

  // Vector v of a column after the pivot. In registers the row of the pivot is included: it becomes 0 + 1 multiple.
  LCP_INLINE Vector updated(Vector x, int v, Vector multiple) const {
    if constexpr (kInRegisters) stdx::where(is_r_[v], x) = 0;
    return multiply_add(driving_[v], multiple, x);
  }
  LCP_INLINE void update(double* x) const {
    const double multiple = minus_inverse_ * x[r_];
    each([&](auto v)
             LCP_INLINE_LAMBDA { store_aligned(updated(load_aligned(x + v * kWidth), v, multiple), x + v * kWidth); });
    if constexpr (!kInRegisters) x[r_] = multiple;
  }
  // Column j after the pivot: a copy in registers where columns fit there, else updated in memory.
  LCP_INLINE Column<vectors> after(int j) const {
    double* const x = column(j);
    if constexpr (kInRegisters) {
      const Vector multiple = minus_inverse_ * x[r_];
      Column<vectors> result(x);
      unroll<vectors>([&](auto v) LCP_INLINE_LAMBDA { result.set(v, updated(result[v], v, multiple)); });
      return result;
    } else {
      update(x);
      return Column<vectors>(x);
    }
  }
  // Replaces the driving column c by the column of the variable that left the basis.
  LCP_INLINE void finish(int c) const {
    double* const x = column(c);
    each([&](auto v) LCP_INLINE_LAMBDA { store_aligned(driving_[v] * -minus_inverse_, x + v * kWidth); });
    if constexpr (!kInRegisters) x[r_] = -minus_inverse_;
  }

  LCP_INLINE static Vector least_lane(Vector x) {
    return in_all_lanes(x, [](Vector a, Vector b) LCP_INLINE_LAMBDA { return stdx::min(a, b); });
  }

  // The ratio test: the row that blocks the driving variable first, or -1 where none does. The artificial variable wins
  // a tie, since a solution is found when it leaves; its perturbation is -infinity for that. A right-hand side below 0
  // is round-off and counts as 0.
  LCP_INLINE int ratio_test(const Column<vectors>& driving, const Column<vectors>& q,
                            const Column<vectors>& perturbation) {
    Vector largest = 0;
    each([&](auto v) LCP_INLINE_LAMBDA { largest = stdx::max(largest, stdx::abs(driving[v])); });
    const Vector threshold =
        -pivot_tolerance_ * in_all_lanes(largest, [](Vector x, Vector y) LCP_INLINE_LAMBDA { return stdx::max(x, y); });
    Column<vectors> ratio(ratios_);
    Vector smallest = kInfinity;
    each([&](auto v) LCP_INLINE_LAMBDA {
      const Vector reciprocal = -1.0 / driving[v];
      store_aligned(reciprocal, reciprocals_ + v * kWidth);
      Vector x = kInfinity;
      stdx::where(driving[v] < threshold, x) = stdx::max(Vector(0), q[v]) * reciprocal;
      ratio.set(v, x);
      smallest = stdx::min(smallest, x);
    });
    const Vector least = least_lane(smallest);
    if (!(least[0] < kInfinity)) return -1;
    return least_perturbed(ratio, least + tie_tolerance_ * stdx::max(least, small_ratio_), perturbation);
  }

  // The row that the perturbed ratio test selects among those whose ratio is within the limit: the one with the
  // smallest perturbation_i / |driving_i|. Ties are common in contact problems, and a branch on them could not be
  // predicted.
  LCP_INLINE int least_perturbed(Column<vectors>& ratio, Vector limit, const Column<vectors>& perturbation) const {
    Vector least = kInfinity;
    each([&](auto v) LCP_INLINE_LAMBDA {
      Vector rate = kInfinity;
      stdx::where(ratio[v] <= limit, rate) = perturbation[v] * load_aligned(reciprocals_ + v * kWidth);
      ratio.set(v, rate);
      least = stdx::min(least, rate);
    });
    const Vector best = least_lane(least);
    if constexpr (kInRegisters) {
      std::uint64_t equal = 0;
      unroll<vectors>([&](auto v) LCP_INLINE_LAMBDA { equal |= bits_of_ordered(ratio[v], best) << (v * kWidth); });
      return equal != 0 ? std::countr_zero(equal) : -1;
    } else {
      for (int v = 0; v * kWidth < stride_; ++v) {
        const std::uint64_t equal = bits_of_ordered(ratio[v], best);
        if (equal != 0) return v * kWidth + std::countr_zero(equal);
      }
      return -1;
    }
  }

  int n_;
  std::ptrdiff_t stride_;
  double *columns_, *reciprocals_, *ratios_;
  double pivot_tolerance_, tie_tolerance_;
  Column<vectors> driving_;
  Vector small_ratio_ = 0;
  int r_ = 0;
  double minus_inverse_ = 0;
  Mask<Vector> is_r_[kInRegisters ? vectors : 1];  // NOLINT(bugprone-branch-clone): clang-tidy 14 reads it as 1 : 1
};

template <int vectors>
[[gnu::noinline]] Termination run_lemke(LemkeTableau& tableau, const LemkeProblem& problem, double pivot_tolerance,
                                        double tie_tolerance, std::int64_t max_pivots) {
  return LemkePivots<vectors>(tableau, pivot_tolerance, tie_tolerance).run(tableau, problem, max_pivots);
}

inline Termination lemke(LemkeTableau& tableau, const LemkeProblem& problem, double pivot_tolerance,
                         double tie_tolerance, std::int64_t max_pivots) {
  const auto run = [&](auto vectors) {
    return run_lemke<vectors>(tableau, problem, pivot_tolerance, tie_tolerance, max_pivots);
  };
  switch (tableau.stride / kWidth) {
    case 1:
      return run(std::integral_constant<int, 1>{});
    case 2:
      return run(std::integral_constant<int, 2>{});
    case 3:
      return run(std::integral_constant<int, 3>{});
    case 4:
      return run(std::integral_constant<int, 4>{});
    case 5:
      return run(std::integral_constant<int, 5>{});
    case 6:
      return run(std::integral_constant<int, 6>{});
    default:
      return run(std::integral_constant<int, 0>{});
  }
}

}  // namespace lcp::solver::LCP_ISA
