// What is compiled once for each instruction set of the processors, and which of them is used.
#pragma once

#include <cstddef>
#include <cstdint>

#include "solver/end.h"

namespace lcp::solver {

/// The n up to which there are SmallKernels.
inline constexpr int kSmall = 4;

/// The n up to which all bases are tried, many problems at a time.
inline constexpr int kEnumerated = 6;

/// The n up to which problems may be pivoted in lockstep.
inline constexpr int kLockstep = 16;

/// The numbers that its kernels work with, for vectors of up to 8.
constexpr std::size_t lockstep_workspace(int n) { return static_cast<std::size_t>(2 * n * n + 11 * n + 1) * 8; }
constexpr std::size_t adjoint_workspace(int n) { return static_cast<std::size_t>(2 * n * n + 8 * n + 1) * 8; }

/// A run of problems in memory: one behind another, or one for all.
template <class T>
struct Run {
  const T* data;
  bool shared;
};

/// An element that a kernel leaves to the careful code.
inline constexpr std::int8_t kOpen = -1;

/// Solves `count` problems of one n: z, w: count x n, status 0, or else kOpen and z, w undefined. guess.data may be
/// nullptr. tolerance must be at least `finest`.
template <class T>
using Solve = void (*)(std::int64_t count, Run<T> M, const T* q, Run<T> guess, double tolerance, T* z, T* w,
                       std::int8_t* status);

template <class T>
struct SmallKernels {
  Solve<T> solve;
  /// The same in double precision, for floats that leave too many problems open; nullptr for doubles.
  Solve<T> solve_as_double;
  /// t = J' (g_z, g_w), see active_set.h; status as above.
  void (*adjoint)(std::int64_t count, Run<T> M, const T* z, const T* w, Run<T> g_z, Run<T> g_w, bool tied_active, T* t,
                  std::int8_t* status);
  /// t x' for each element, count x n x n; a NaN in x counts as 0.
  void (*outer)(std::int64_t count, const T* t, const T* x, T* result);
  /// The sum of those, n x n.
  void (*sum_outer)(std::int64_t count, const T* t, const T* x, double* result);
};

/// w = M z + d z0 + q: M n x n row-major, the covering vector d > 0 and a perturbation of q, n numbers each; min q < 0.
struct LemkeProblem {
  const double *M, *q, *cover, *perturbation;
};

/// The state of Lemke's method, see lemke.h. Variable i is w_i, n + i is z_i, 2 n the artificial one.
struct LemkeTableau {
  int n;
  int stride;                 ///< of a column, in numbers: a multiple of 8, at least n
  double* columns;            ///< aligned to 64 bytes: n + 1 nonbasic ones, the perturbation, q; zeros below row n
  double* scratch;            ///< 2 * stride numbers to work with, aligned too
  int* row_variable;          ///< n: the basic variable of each row
  int* complement_column;     ///< n: where its complement is
  int last_row, last_column;  ///< out: the pivot by which the artificial variable left, of which only q has heard
  std::int64_t pivots;        ///< out
};

/// The same for n <= kLockstep.
template <class T>
struct LockstepKernels {
  /// Without a guess. perturbation: n, see lemke.h; workspace: lockstep_workspace(n) numbers, aligned to 64 bytes.
  void (*solve)(int n, std::int64_t count, Run<T> M, const T* q, double tolerance, const double* perturbation,
                double* workspace, T* z, T* w, std::int8_t* status);
  /// For n > kSmall. workspace: adjoint_workspace(n) numbers, aligned to 64 bytes.
  void (*adjoint)(int n, std::int64_t count, Run<T> M, const T* z, const T* w, Run<T> g_z, Run<T> g_w, bool tied_active,
                  double* workspace, T* t, std::int8_t* status);
  void (*outer)(int n, std::int64_t count, const T* t, const T* x, T* result);
  void (*sum_outer)(int n, std::int64_t count, const T* t, const T* x, double* result);
};

/// Those for numbers of type T.
template <class T>
struct BatchKernels {
  SmallKernels<T> small[kSmall];             ///< for n = 1, 2, ..
  Solve<T> enumerate[kEnumerated - kSmall];  ///< for n = kSmall + 1, ..
  LockstepKernels<T> lockstep;
  double finest;  ///< tolerance
};

/// A row's columns [first, last); it is 0 in the others.
struct Span {
  int first, last;
};

/// M: n x n row-major, n spans or nullptr.
struct Rows {
  int n;
  const double* M;
  const Span* spans;
};

struct RowKernels {
  /// max |x_i|; infinity where an x_i is NaN or infinite.
  double (*largest)(std::int64_t count, const double* x);
  /// The same of M, and the span of each row; for small n, all of the row.
  double (*scan)(int n, const double* M, Span* spans);
  /// first second x, 0 for 0; whether scaling lost nothing: no x_i != 0 became 0 or subnormal.
  bool (*scale)(std::int64_t count, const double* x, double first, double second, double* scaled);
  /// Whether |M_ij - M_ji| <= rounding sqrt(M_ii M_jj): the error of a product A'A beside its exact value. M_ii: n, >
  /// 0.
  bool (*is_symmetric)(const Rows& rows, const double* diagonal, double rounding);
  /// (q + M z)_i and |q_i| + sum_j |M_ij z_j| for `count` rows from i = `from` on; z must be finite where there are
  /// spans.
  void (*sums)(const Rows& rows, int from, int count, const double* q, const double* z, double* sum, double* magnitude);
  /// w_i = (q + M z)_i for the rows i that `index` lists.
  void (*complement)(const Rows& rows, int count, const int* index, const double* q, const double* z, double* w);
};

/// As many rows of a lower triangle as a vector has lanes, column by column, from column `first` on, a multiple of that
/// number; the columns before are 0.
struct Panel {
  double* data;
  int first;
};

/// U D^-1 U' = M_aa, U lower triangular and D its diagonal; see cholesky.h.
struct CholeskyKernels {
  int width;  ///< of a panel
  /// index: the k indices a. lower: scratch, width numbers for each column; inverse: D^-1. False where M_aa is not
  /// definite.
  bool (*factor)(const Rows& rows, int k, const int* index, const Panel* panels, double* lower, double* inverse);
  /// x <- M_aa^-1 x, with zeros behind x up to a whole panel. scratch: as long as x.
  void (*solve)(int k, const Panel* panels, const double* inverse, double* scratch, double* x);
};

struct Kernels {
  const char* name;  ///< of the instruction set
  BatchKernels<double> doubles;
  BatchKernels<float> floats;
  int lockstep_up_to;  ///< above that n, solving one problem after another is faster
  /// Pivots from w = q on until the artificial variable leaves or nothing blocks. tableau: row i with variable i, whose
  /// complement is in column i.
  End (*lemke)(LemkeTableau& tableau, const LemkeProblem& problem, double pivot_tolerance, double tie_tolerance,
               std::int64_t max_pivots);
  RowKernels rows;
  CholeskyKernels cholesky;

  template <class T>
  const BatchKernels<T>& batch() const {
    if constexpr (sizeof(T) == sizeof(double)) {
      return doubles;
    } else {
      return floats;
    }
  }
};

/// Those of the best instruction set of this processor, or of the one that the environment variable TORCHLCP_ISA names:
/// "portable", "avx2" or "avx512". Throws std::invalid_argument where it names another, or one that the processor or
/// this build lacks.
const Kernels& kernels();

}  // namespace lcp::solver
