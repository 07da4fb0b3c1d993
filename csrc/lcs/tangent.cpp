#include "lcs/tangent.h"

#include <algorithm>
#include <utility>

#include "batch/elements.h"
#include "interrupt/checkpoint.h"
#include "lcs/blocks.h"
#include "lcs/kernels.h"

namespace lcp::lcs {
namespace {

// The memory of the kernel: both systems, the numbers that it carries from step to step, and numbers of one vector.
template <class T>
Footprint tangent_footprint(const Given<T>& given, const Given<T>& change, const Size& size) {
  const auto [k, m, n] = size;
  Footprint all;
  for (const System<T>* system : {&given.system, &change.system}) {
    const Footprint some = footprint(*system, size);
    all.each += some.each;
    all.once += some.once;
    all.add(system->d.shared, k);
    all.add(system->M.shared, n * n);
    all.add(system->q.shared, n);
  }
  all.add(false, k + 1);
  all.add(true, 2 * (k + m) + kVectorsOfPairs * n + n * n);
  return all;
}

}  // namespace

template <class T>
Tangent<T>::Tangent(const Size& size, Cone cone, Ties ties, double kappa)
    : size_(size),
      cone_(std::move(cone)),
      ties_(ties),
      derivative_(size.n, ties),
      r_(kWidest * size.n),
      none_(kWidest * size.n),
      dz_(kWidest * size.n) {
  if (kappa > 0) path_.emplace(size.n, kappa);
}

template <class T>
void Tangent<T>::run_block(std::int64_t count, std::int64_t steps, const Given<T>& given, const WalkedSteps<T>& walked,
                           const Given<T>& change, const Changes<T>& to) {
  const int n = size_.n;
  const BatchView<T>& M = given.system.M;
  for (std::int64_t b = 0; b < (M.shared ? 1 : count); ++b) {
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < n; ++j) M_[(b * n + j) * n + i] = M.data[(b * n + i) * n + j];
    }
  }
  struct Problems {
    Tangent& tangent;
    BatchView<T> M;
    lcs::WalkedSteps<T> steps;
    interrupt::Pace pace;

    void find_points(std::int64_t s, std::int64_t first, std::int64_t some) {
      const int pairs = tangent.size_.n;
      tangent.path_->find(some, batch::from(M, first, pairs * pairs), {tangent.r_.data(), false},
                          batch::from(step_of(steps.z, s), first, pairs));
      std::copy_n(tangent.path_->z().data, some * pairs, tangent.dz_.data());
    }
    void solve(std::int64_t s, std::int64_t first, std::int64_t some) {
      const int pairs = tangent.size_.n;
      pace.spend(some * pairs * pairs);
      if (tangent.path_) return tangent.path_->tangent(0, some, tangent.r_.data(), tangent.dz_.data());
      const BatchView<T> transposed = batch::from(BatchView<T>{tangent.M_.data(), M.shared}, first, pairs * pairs);
      tangent.derivative_.adjoint(some, transposed, step_of(steps.states, s).data + first * pairs, tangent.r_.data(),
                                  tangent.none_.data(), tangent.dz_.data());
    }
  };
  Problems problems = {*this, M, walked, {}};
  const auto find_points = [](void* self, std::int64_t s, std::int64_t first, std::int64_t some) {
    static_cast<Problems*>(self)->find_points(s, first, some);
  };
  const auto solve = [](void* self, std::int64_t s, std::int64_t first, std::int64_t some) {
    static_cast<Problems*>(self)->solve(s, first, some);
  };
  kernels().of<T>(n).tangent({size_, cone_.empty() ? nullptr : cone_.data(), count, steps, given, change, walked, to,
                              ties_ == Ties::kActive, ties_ == Ties::kMidpoint, path_.has_value(), workspace_.data(),
                              r_.data(), dz_.data(), find_points, solve, &problems});
}

template <class T>
void Tangent<T>::run(std::int64_t count, std::int64_t steps, const Given<T>& given, const WalkedSteps<T>& walked,
                     const Given<T>& change, const Changes<T>& to) {
  const Footprint all = tangent_footprint(given, change, size_);
  const std::int64_t most = block_of(all.each);
  const std::int64_t largest = std::min(most, count);
  workspace_.resize(all.size(largest));
  M_.resize(largest * size_.n * size_.n);
  for (std::int64_t b = 0; b < count; b += most) {
    interrupt::checkpoint();
    run_block(std::min(most, count - b), steps, from(given, b, size_), from(walked, b, size_), from(change, b, size_),
              from(to, b, size_));
  }
}

template class Tangent<double>;
template class Tangent<float>;

}  // namespace lcp::lcs
