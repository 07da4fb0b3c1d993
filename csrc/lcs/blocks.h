// Walks take a block of trajectories at a time through all steps, so that what they carry stays in the cache.
#pragma once

#include <algorithm>
#include <cstdint>

#include "batch/elements.h"
#include "lcs/kernels.h"
#include "lcs/system.h"

namespace lcp::lcs {

/// The most trajectories of a block.
inline constexpr std::int64_t kBlock = 4096;

/// The number of trajectories to take at a time if each carries this many numbers, so that a block stays in the cache.
inline std::int64_t block_of(std::int64_t numbers) {
  constexpr std::int64_t kInCache = 16'384;  // numbers: an eighth of a megabyte
  return std::clamp(kInCache / std::max<std::int64_t>(numbers, 1), kWidest, kBlock) / kWidest * kWidest;
}

/// Numbers in a workspace: for each trajectory, and once for all of them.
struct Footprint {
  std::int64_t each = 0, once = 0;

  void add(bool shared, std::int64_t numbers) { (shared ? once : each) += numbers; }
  /// The size of the workspace for `count` trajectories.
  std::int64_t size(std::int64_t count) const {
    return each * ((count + kWidest - 1) / kWidest * kWidest) + once * kWidest;
  }
};

/// The numbers of the entries of the system, except those of M, d and q.
template <class T>
Footprint footprint(const System<T>& system, const Size& size) {
  const auto [k, m, n] = size;
  Footprint all;
  all.add(system.A.shared, k * k);
  all.add(system.B.shared, k * m);
  all.add(system.D.shared, k * n);
  all.add(system.G.shared, k * n);
  all.add(system.E.shared, n * k);
  all.add(system.H.shared, n * m);
  return all;
}

/// The view that begins at trajectory b; size: the numbers of an element.
template <class T>
StepsView<T> from(const StepsView<T>& view, std::int64_t b, std::int64_t size) {
  return {view.data + (view.shared ? 0 : b * size), view.stride, view.shared};
}

/// Step s of all trajectories.
template <class T>
BatchView<T> step_of(const StepsView<T>& view, std::int64_t s) {
  return {view.data + s * view.stride, view.shared};
}

template <class T>
System<T> from(const System<T>& system, std::int64_t b, const Size& size) {
  using batch::from;
  const auto [k, m, n] = size;
  return {from(system.A, b, k * k), from(system.B, b, k * m), from(system.D, b, k * n),
          from(system.G, b, k * n), from(system.d, b, k),     from(system.E, b, n * k),
          from(system.H, b, n * m), from(system.M, b, n * n), from(system.q, b, n)};
}

template <class T>
Path<T> from(const Path<T>& path, std::int64_t b, const Size& size) {
  return {path.x_next + b * size.k,
          path.z + b * size.n,
          path.w + b * size.n,
          path.residual + b,
          path.status + b,
          path.states == nullptr ? nullptr : path.states + b * size.n,
          path.batch};
}

template <class T>
WalkedPath<T> from(const WalkedPath<T>& path, std::int64_t b, const Size& size) {
  const auto [k, m, n] = size;
  return {batch::from(path.x, b, k), from(path.u, b, m),   from(path.x_next, b, k),
          from(path.z, b, n),        from(path.w, b, n),   from(path.states, b, n),
          from(path.g_x_next, b, k), from(path.g_z, b, n), from(path.g_w, b, n)};
}

template <class T>
Gradients<T> from(const Gradients<T>& gradients, std::int64_t b, const Size& size) {
  const auto [k, m, n] = size;
  const auto at = [b](T* first, std::int64_t length) { return first == nullptr ? nullptr : first + b * length; };
  return {at(gradients.A, k * k), at(gradients.B, k * m), at(gradients.D, k * n), at(gradients.G, k * n),
          at(gradients.d, k),     at(gradients.E, n * k), at(gradients.H, n * m), at(gradients.M, n * n),
          at(gradients.q, n),     at(gradients.x, k),     at(gradients.u, m),     gradients.batch};
}

template <class T>
Given<T> from(const Given<T>& given, std::int64_t b, const Size& size) {
  return {from(given.system, b, size), batch::from(given.x, b, size.k), from(given.u, b, size.m)};
}

template <class T>
WalkedSteps<T> from(const WalkedSteps<T>& walked, std::int64_t b, const Size& size) {
  return {from(walked.x_next, b, size.k), from(walked.z, b, size.n), from(walked.w, b, size.n),
          from(walked.status, b, 1), from(walked.states, b, size.n)};
}

template <class T>
Changes<T> from(const Changes<T>& to, std::int64_t b, const Size& size) {
  return {to.x_next + b * size.k, to.z + b * size.n, to.w + b * size.n, to.batch};
}

}  // namespace lcp::lcs
