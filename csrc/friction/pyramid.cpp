#include "friction/pyramid.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>

namespace lcp::friction {

void pyramid_matrix(int contacts, const Directions& directions, const double* W, const double* mu, double* M) {
  const std::ptrdiff_t rows = 3 * contacts, each = directions.unknowns(), size = each * contacts;
  for (std::ptrdiff_t i = 0; i < contacts; ++i) {
    const double* const cosine_i = directions.cosine + i * directions.stride;
    const double* const sine_i = directions.sine + i * directions.stride;
    for (std::ptrdiff_t j = 0; j < contacts; ++j) {
      const double* const cosine = directions.cosine + j * directions.stride;
      const double* const sine = directions.sine + j * directions.stride;
      const double* const block_W = W + 3 * i * rows + 3 * j;
      double* const block = M + each * i * size + each * j;
      const auto fill = [&](double* row, double x, double y, double normal) {  // (x, y, normal) W D
        const auto times = [&](std::ptrdiff_t k) {
          return x * block_W[k] + y * block_W[rows + k] + normal * block_W[2 * rows + k];
        };
        const double along_x = times(0), along_y = times(1);
        row[0] = times(2);
        for (int k = 0; k < directions.count; ++k) row[1 + k] = cosine[k] * along_x + sine[k] * along_y;
        row[each - 1] = 0;
      };
      fill(block, 0, 0, 1);
      for (int k = 0; k < directions.count; ++k) {
        double* const row = block + (1 + k) * size;
        fill(row, cosine_i[k], sine_i[k], 0);
        if (i == j) row[each - 1] = 1;
      }
      double* const slip = block + (each - 1) * size;
      std::fill_n(slip, each, 0.0);
      if (i != j) continue;
      slip[0] = mu[i];
      std::fill_n(slip + 1, directions.count, -1.0);
    }
  }
}

void pyramid_impulses(int contacts, const Directions& directions, const double* z, double* x) {
  for (std::ptrdiff_t i = 0; i < contacts; ++i, z += directions.unknowns(), x += 3) {
    x[0] = x[1] = 0;
    for (int k = 0; k < directions.count; ++k) {
      x[0] += directions.cosine[i * directions.stride + k] * z[1 + k];
      x[1] += directions.sine[i * directions.stride + k] * z[1 + k];
    }
    x[2] = z[0];
  }
}

void pyramid_unknowns(int contacts, const Directions& directions, const double* x, double* z) {
  for (std::ptrdiff_t i = 0; i < contacts; ++i, z += directions.unknowns(), x += 3) {
    z[0] = x[2];
    for (int k = 0; k < directions.count; ++k) {
      z[1 + k] =
          directions.cosine[i * directions.stride + k] * x[0] + directions.sine[i * directions.stride + k] * x[1];
    }
    z[1 + directions.count] = 0;
  }
}

Pyramid::Pyramid(int contacts)
    : contacts_(contacts),
      angle_(contacts),
      cosine_(static_cast<std::size_t>(kCount) * contacts),
      sine_(cosine_.size()),
      directions_{kCount, cosine_.data(), sine_.data(), kCount},
      lcp_(directions_.unknowns() * contacts, {.max_pivots = {}, .quick = true}),
      q_(static_cast<std::size_t>(directions_.unknowns()) * contacts),
      z_(q_.size()),
      w_(q_.size()) {
  M_.resize(q_.size() * q_.size());
}

bool Pyramid::solve(const Impulses& problem, const double* mu, double* h) {
  for (std::size_t i = 0; i < cosine_.size(); ++i) {
    const double angle = angle_[i / kCount] + 2 * std::numbers::pi / kCount * static_cast<double>(i % kCount);
    cosine_[i] = std::cos(angle);
    sine_[i] = std::sin(angle);
  }
  pyramid_matrix(contacts_, directions_, problem.W, mu, M_.data());
  pyramid_unknowns(contacts_, directions_, problem.q, q_.data());
  // The row of a large mu is divided by this mu, so that its entries are like those of other rows.
  for (std::size_t k = 0; k < angle_.size(); ++k) {
    const std::size_t last = directions_.unknowns() * (k + 1) - 1;
    for (std::size_t j = 0; mu[k] > 1 && j < q_.size(); ++j) M_[last * q_.size() + j] /= mu[k];
  }
  if (lcp_.solve(M_.data(), q_.data(), nullptr, z_.data(), w_.data()) != Status::kSolved) return false;
  pyramid_impulses(contacts_, directions_, z_.data(), h);
  for (std::size_t k = 0; k < angle_.size(); ++k) {
    if (h[3 * k] != 0 || h[3 * k + 1] != 0) angle_[k] = std::atan2(h[3 * k + 1], h[3 * k]);
  }
  return true;
}

}  // namespace lcp::friction
