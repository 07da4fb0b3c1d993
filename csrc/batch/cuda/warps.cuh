// Problems of kEnumerated < n <= kLargest, one in each warp, whose lane i holds row i.
#pragma once

#include <limits>

#include "batch/adjoint.h"
#include "batch/cuda/kernels.h"
#include "batch/verify.h"
#include "linalg/cuda/elimination.cuh"
#include "linalg/cuda/warp.cuh"
#include "solver/lemke.h"

namespace lcp::batch::cuda {

using namespace linalg::cuda;

inline constexpr int kWarps = 4;  // the warps of a block

struct Perturbation {
  double of_row[kWarp];
};

// The method of batch/lockstep.h. Columns are numbered as in that file, except those of the artificial variable, q and
// the perturbation. These lie behind column size - 1, so that arrays of known length live in registers.
template <int size>
class WarpLemke {
  static constexpr solver::Lemke::Options kOptions = {};
  static constexpr int kArtificial = size, kRight = size + 1, kPerturbation = size + 2;

 public:
  // row: the row of M, 0 beyond n; q: 0 beyond n.
  __device__ WarpLemke(int n, const WarpMemory<size>& memory, double q, double perturbation) : n_(n), q_(q) {
    const bool exists = lane() < n;
#pragma unroll
    for (int j = 0; j < size; ++j) row_[j] = exists && j < n ? memory.at(lane(), j) : 0.0;
    row_[kArtificial] = exists ? 1 : 0;
    row_[kRight] = q;
    row_[kPerturbation] = exists ? perturbation : 0;
    largest_q_ = largest_of_lanes(stdx::abs(q));
  }

  __device__ double largest_q() const { return largest_q_; }

  // Returns z of this lane's pair; NaN if the artificial variable has not left.
  __device__ double solve(WarpMemory<size>& memory) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    const bool exists = lane() < n_;
    row_variable_ = exists ? lane() : -1;
    column_variable_ = exists ? n_ + lane() : -1;
    artificial_column_variable_ = 2 * n_;
    const double least = least_of_lanes(exists ? q_ : infinity);
    bool open = least < 0;
    if (open) {
      driving_column_ = kArtificial;
      driving_ = exists ? 1 : 0;
      reciprocal_ = -1;
      blocking_ = first_of_least(exists && q_ == least ? row_[kPerturbation] : infinity);
      const int artificial_row = blocking_;
      const int most = 4 * n_ + 8;
      for (int step = 0; step < most && open && blocking_ >= 0; ++step) {
        pivot();
        open = exchange();
        if (!open) break;
        find_driving();
        ratio_test(artificial_row);
      }
    }
    memory.share(0);
    if (exists && row_variable_ >= n_ && row_variable_ < 2 * n_) {
      memory.vector[row_variable_ - n_] = stdx::max(0.0, row_[kRight]);
    }
    __syncwarp();
    double z = memory.vector[lane()];
    // A z of at most this share of the largest is round-off of 0, see Walk::solve in walk.h.
    if (z <= 8 * std::numeric_limits<double>::epsilon() * largest_of_lanes(z)) z = 0;
    return open ? std::numeric_limits<double>::quiet_NaN() : z;
  }

 private:
  // The first lane with the least rate, or -1 where all are infinite.
  __device__ static int first_of_least(double rate) {
    const double least = least_of_lanes(rate);
    return first_lane(rate == least && least < std::numeric_limits<double>::infinity());
  }

  __device__ void pivot() {
    const double inverse = -from_lane(reciprocal_, blocking_);
    const bool blocks = lane() == blocking_;
#pragma unroll
    for (int j = 0; j < size + 3; ++j) {
      const bool drives = j <= kArtificial && j == driving_column_;
      const double multiple = drives ? inverse : -inverse * from_lane(row_[j], blocking_);
      const double x = multiply_add(driving_, multiple, drives ? 0.0 : row_[j]);
      row_[j] = blocks ? multiple : x;
    }
  }

  // Returns whether the artificial variable is still basic. Then the complement of the variable that left becomes the
  // driving variable.
  __device__ bool exchange() {
    const int left = from_lane(row_variable_, blocking_);
    const bool by_artificial = driving_column_ == kArtificial;
    const int entered = by_artificial ? artificial_column_variable_ : from_lane(column_variable_, driving_column_);
    if (by_artificial) {
      artificial_column_variable_ = left;
    } else if (lane() == driving_column_) {
      column_variable_ = left;
    }
    if (lane() == blocking_) row_variable_ = entered;
    if (left == 2 * n_) return false;
    const int complement = left < n_ ? left + n_ : left - n_;
    const int column = first_lane(column_variable_ == complement);
    driving_column_ = column >= 0 ? column : kArtificial;
    return true;
  }

  __device__ void find_driving() {
#pragma unroll
    for (int j = 0; j <= kArtificial; ++j) {
      if (j == driving_column_) driving_ = row_[j];
    }
  }

  __device__ void ratio_test(int artificial_row) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    const double threshold = -kOptions.pivot_tolerance * largest_of_lanes(stdx::abs(driving_));
    reciprocal_ = -1.0 / driving_;
    const double ratio = driving_ < threshold ? stdx::max(0.0, row_[kRight]) * reciprocal_ : infinity;
    const double least = least_of_lanes(ratio);
    const double limit = multiply_add(kOptions.tie_tolerance, stdx::max(least, 1e-3 * largest_q_), least);
    double rate = ratio <= limit && ratio < infinity ? row_[kPerturbation] * reciprocal_ : infinity;
    if (lane() == artificial_row && ratio <= limit && ratio < infinity) rate = -infinity;
    blocking_ = first_of_least(rate);
  }

  int n_;
  double q_, largest_q_, row_[size + 3];
  double driving_, reciprocal_;  // this row's entry of the driving column, and -1 over it
  int driving_column_, blocking_;
  int row_variable_, column_variable_, artificial_column_variable_;
};

// The verdict on z by the rules of batch/verify.h for a pivoted basis, and this lane's w and s_i.
template <class T>
struct Checked {
  bool solved;
  double w, scale;
};
template <class T, int size>
__device__ Checked<T> verify_in_warp(int n, WarpMemory<size>& memory, double q, double z, double largest_q,
                                     double tolerance) {
  constexpr double epsilon = std::numeric_limits<double>::epsilon();
  const bool exists = lane() < n;
  memory.share(z);
  double sum = q;
  double terms = stdx::abs(q);
  for (int j = 0; j < n; ++j) {
    const double entry = exists ? memory.at(lane(), j) : 0.0;
    sum = multiply_add(entry, memory.vector[j], sum);
    terms = multiply_add(stdx::abs(entry), memory.vector[j], terms);
  }
  const double w = z > 0 ? 0.0 : stdx::max(0.0, sum);
  const double miss = stdx::abs(sum - w);
  const double all_terms = sum_of_lanes(terms);
  const double largest_miss = largest_of_lanes(miss);
  const bool wrong = any_lane(!(kNearRoundOff<T> * terms - miss >= 0));
  const double cap = stdx::max(double(kNearRoundOff<T>) * largest_q, (n + 1) * epsilon * all_terms);
  const double rounding = 2 * (n + 1) * epsilon / tolerance;
  const bool usual = largest_q >= kSmallestScale<double> || largest_q == 0;
  const bool solved = all_terms * rounding <= largest_q && largest_miss <= cap && usual &&
                      all_terms <= double(std::numeric_limits<T>::max()) && !wrong;
  return {solved, w, terms};
}

// The state of a pair, and whether it is doubtful.
struct FoundState {
  double state;
  bool doubtful;
};

// Finds the state of this lane's pair by the rule of solver/find_pair_states.h. z must be shared in `memory`.
template <class T, int size>
__device__ FoundState find_state_in_warp(int n, WarpMemory<size>& memory, double q, double z, double w, double scale) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const double round_off = solver::kRoundOffInEpsilon * double(std::numeric_limits<T>::epsilon());
  const double factor = solver::doubtful_factor(std::numeric_limits<T>::epsilon());
  const bool exists = lane() < n;
  const double error = round_off * scale;
  bool tied = w <= error;
  bool doubtful = !tied && w <= factor * error;
  const double limit = stdx::abs(q) > round_off * w + error ? error : infinity;
  memory.share(limit);
  double excess = 0;
  double certain = 0;
  bool seen = false;
  for (int i = 0; exists && i < n; ++i) {
    const double entry = stdx::abs(memory.at(i, lane()));
    excess = stdx::max(excess, multiply_subtract(entry, z, memory.vector[i]));
    certain = stdx::max(certain, multiply_subtract(entry, z, factor * memory.vector[i]));
    seen = seen || (memory.vector[i] < infinity && entry * z > 0);
  }
  bool basic = excess > 0;
  doubtful = doubtful || (basic && !(certain > 0));
  if (any_lane(z > 0 && !basic)) {
    const bool negligible = seen && !basic;
    basic = z > 0 && !negligible;
    memory.share(negligible ? 0 : z);
    double rest = 0;
    for (int j = 0; exists && j < n; ++j) rest += stdx::abs(memory.at(lane(), j) * memory.vector[j]);
    memory.share(limit < infinity ? 0 : rest);  // only rows with q_i = 0 count
    for (int i = 0; exists && i < n; ++i) {
      const double in_row = memory.vector[i];
      const double effect = stdx::abs(memory.at(i, lane()) * z);
      const bool balances = in_row > 0 && effect > round_off * in_row;
      doubtful = doubtful || (balances && !basic && effect <= factor * (round_off * in_row));
      basic = basic || balances;
    }
    memory.share(basic ? z : -z);
    rest = stdx::abs(q);
    double zeros = 0;
    for (int j = 0; exists && j < n; ++j) {
      const double effect = stdx::abs(memory.at(lane(), j) * memory.vector[j]);
      if (memory.vector[j] < 0) {
        zeros += effect;
      } else {
        rest += effect;
      }
    }
    tied = tied || w - zeros <= round_off * (rest + zeros);
  }
  return {state_numbers<double>(basic && z > 0, tied), doubtful};
}

template <int size, class T>
__global__ void __launch_bounds__(kWarp* kWarps)
    solve_in_warps(int n, std::int64_t count, BatchView<T> M, BatchView<T> q, double tolerance,
                   Perturbation perturbation, Solutions<T> solutions, std::int32_t* left) {
  __shared__ WarpMemory<size> memories[kWarps];
  WarpMemory<size>& memory = memories[threadIdx.x / kWarp];
  const std::int64_t b = std::int64_t{blockIdx.x} * kWarps + threadIdx.x / kWarp;
  if (b >= count) return;
  const bool exists = lane() < n;
  memory.load(n, M.data + (M.shared ? 0 : b * n * n));
  const double q_i = exists ? double(q.data[(q.shared ? 0 : b * n) + lane()]) + 0.0 : 0.0;
  WarpLemke<size> lemke(n, memory, q_i, perturbation.of_row[lane()]);
  const double z = double(T(lemke.solve(memory)));
  const Checked<T> checked = verify_in_warp<T>(n, memory, q_i, z, lemke.largest_q(), tolerance);
  bool solved = checked.solved;
  if (exists) {
    solutions.z[b * n + lane()] = T(z);
    solutions.w[b * n + lane()] = T(checked.w);
  }
  if (solutions.states != nullptr) {
    const auto [state, doubtful] = find_state_in_warp<T>(n, memory, q_i, z, checked.w, checked.scale);
    if (exists) solutions.states[b * n + lane()] = static_cast<std::int8_t>(state);
    solved = solved && (left == nullptr || !any_lane(doubtful));  // the CPU refines z to tell
  }
  if (lane() == 0) {
    solutions.status[b] = solved ? 0 : kLeftOver;
    if (!solved && left != nullptr) atomicAdd(left, 1);
  }
}

// One element of a batch that is differentiated in the lanes of a warp, by the system of solver/active_set.h. The
// result is t = J' (g_z, g_w) or, with `transposed` false, (dz, dw) = J g_z.
template <class T, bool transposed>
struct Derivative {
  int n;
  BatchView<T> M;
  BatchView<std::int8_t> states;
  BatchView<T> g_z, g_w;
  bool tied_active;
  T *first, *second;  // t; or dz and dw

  __device__ double read(const BatchView<T>& view, std::int64_t b) const {
    return lane() < n ? double(view.data[(view.shared ? 0 : b * n) + lane()]) : 0.0;
  }
  __device__ const T* matrix(std::int64_t b) const { return M.data + (M.shared ? 0 : b * n * n); }
  __device__ double state(std::int64_t b) const {
    return lane() < n ? double(states.data[(states.shared ? 0 : b * n) + lane()]) : 0.0;
  }
  // Writes the derivative of an unsolved element, see solver/unsolved.h.
  __device__ void write_unsolved(std::int64_t b) const {
    const bool is_zero = !any_lane(read(g_z, b) != 0 || (transposed && read(g_w, b) != 0));
    const T value = is_zero ? T(0) : std::numeric_limits<T>::quiet_NaN();
    if (lane() < n) first[b * n + lane()] = value;
    if (!transposed && lane() < n) second[b * n + lane()] = value;
  }
  // The right-hand side of this lane's row; for an inactive pair, its t or dz.
  template <int size>
  __device__ double right(std::int64_t b, WarpMemory<size>& memory, bool active) const {
    double sum = -read(g_z, b);
    if constexpr (transposed) {
      const double inactive_g = active ? 0.0 : read(g_w, b);
      memory.share(inactive_g);
      for (int j = 0; lane() < n && j < n; ++j) sum = subtract_product(memory.at(j, lane()), memory.vector[j], sum);
      return active ? sum : inactive_g;
    } else {
      return active ? sum : 0.0;
    }
  }
  template <int size>
  __device__ void write(std::int64_t b, WarpMemory<size>& memory, bool active, double x) const {
    if (lane() < n) first[b * n + lane()] = T(x);
    if constexpr (!transposed) {
      memory.share(x);
      double sum = read(g_z, b);
      for (int j = 0; lane() < n && j < n; ++j) sum = multiply_add(memory.at(lane(), j), memory.vector[j], sum);
      if (lane() < n) second[b * n + lane()] = active ? T(0) : T(sum);
    }
  }
};

// Differentiates one element in each warp; those whose M_aa is not clearly regular are left to singular.cuh.
template <int size, class T, bool transposed>
__global__ void __launch_bounds__(kWarp* kWarps)
    differentiate_in_warps(std::int64_t count, Derivative<T, transposed> derivative, LeftElements left) {
  __shared__ WarpMemory<size> memories[kWarps];
  WarpMemory<size>& memory = memories[threadIdx.x / kWarp];
  const std::int64_t b = std::int64_t{blockIdx.x} * kWarps + threadIdx.x / kWarp;
  if (b >= count) return;
  const int n = derivative.n;
  const bool exists = lane() < n;
  const int i = lane();
  const double state = derivative.state(b);
  if (any_lane(state < 0)) return derivative.write_unsolved(b);
  const bool active = exists && is_active(state, derivative.tied_active);
  const unsigned active_lanes = __ballot_sync(kAllLanes, active);
  memory.load(n, derivative.matrix(b));
  const double right = derivative.right(b, memory, active);
  double largest = 0;
  double row[size];
#pragma unroll
  for (int j = 0; j < size; ++j) {
    double entry = 0;
    if (exists && j < n) entry = transposed ? memory.at(j, i) : memory.at(i, j);
    const bool basic = active && (active_lanes >> j & 1) != 0;
    if (basic) largest = stdx::max(largest, stdx::abs(entry));
    row[j] = basic ? entry : i == j ? 1.0 : 0.0;
  }
  const bool nothing = !any_lane(active && right != 0);  // M_aa is solved for 0
  double x = 0;
  const double growth = solve_system_in_warp<size>(row, right, active, &x);
  x = !active ? right : nothing ? 0.0 : x + 0.0;
  const bool finite = !any_lane(!(stdx::abs(x) <= std::numeric_limits<double>::max()));
  if (finite && (nothing || growth * largest_of_lanes(largest) < kClearCondition<T>)) {
    derivative.write(b, memory, active, x);
  } else if (i == 0) {
    left.element[atomicAdd(left.count, 1ULL)] = b;
  }
}

}  // namespace lcp::batch::cuda
