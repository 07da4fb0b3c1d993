// The first impacts of a step.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <vector>

#include "rigid/scene.h"

namespace lcp::rigid {

/// A contact that carries an impulse.
struct Touch {
  int pair;
  double time;  ///< s, of its impact after the beginning of the step; infinity where there is none
};

/// Bodies that touch, or that touch others which do, move as one from the first of their impacts on.
class Impacts {
 public:
  explicit Impacts(const Scene& scene)
      : scene_(scene), group_(scene.bodies), time_(scene.bodies), flies_(scene.bodies) {}

  void find(const std::vector<Touch>& touches) {
    std::iota(group_.begin(), group_.end(), 0);
    std::fill(time_.begin(), time_.end(), std::numeric_limits<double>::infinity());
    for (bool grows = true; grows;) {
      grows = false;
      for (const Touch& touch : touches) {
        const Pair& pair = scene_.pairs[touch.pair];
        if (pair.other_body == Pair::kWorld || group_[pair.body] == group_[pair.other_body]) continue;
        group_[pair.body] = group_[pair.other_body] = std::min(group_[pair.body], group_[pair.other_body]);
        grows = true;
      }
    }
    std::fill(flies_.begin(), flies_.end(), true);
    for (const Touch& touch : touches) {
      const Pair& pair = scene_.pairs[touch.pair];
      double& time = time_[group_[pair.body]];
      time = std::min(time, touch.time);
      if (std::isfinite(touch.time)) continue;
      flies_[pair.body] = false;
      if (pair.other_body != Pair::kWorld) flies_[pair.other_body] = false;
    }
  }

  /// Of the first impact that moves this body, s after the beginning of the step; infinity where there is none.
  double time(int body) const { return time_[group_[body]]; }

  /// Whether nothing but impacts acts on this body.
  bool flies(int body) const { return flies_[body]; }

  /// Whether this is an impact of the body itself at that time.
  bool is_own(const Touch& touch, int body) const {
    const Pair& pair = scene_.pairs[touch.pair];
    return (pair.body == body || pair.other_body == body) && touch.time == time(body);
  }

  /// Whether this is that impact, or one of several at the same time.
  bool is_first(const Touch& touch, int body) const {
    return group_[scene_.pairs[touch.pair].body] == group_[body] && touch.time == time(body);
  }

 private:
  const Scene& scene_;
  std::vector<int> group_;  // of each body, named by its first body
  std::vector<double> time_;
  std::vector<char> flies_;
};

/// The mean of a number of the touches, of_touch(k), over those for which counts(k); 0 without any.
template <class T, class Counts, class OfTouch>
T mean_over(std::size_t touches, const Counts& counts, const OfTouch& of_touch) {
  T sum = 0;
  int count = 0;
  for (std::size_t k = 0; k < touches; ++k) {
    if (!counts(k)) continue;
    sum = sum + of_touch(k);
    ++count;
  }
  return count <= 1 ? sum : (1.0 / count) * sum;
}

}  // namespace lcp::rigid
