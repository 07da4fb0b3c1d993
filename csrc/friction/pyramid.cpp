#include "friction/pyramid.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numbers>

namespace lcp::friction {

PyramidRows::Kind PyramidRows::kind(int r) const {
  const bool has_lower = std::isfinite(lower[r]), has_upper = std::isfinite(upper[r]);
  if (has_lower) return has_upper ? Kind::kInterval : Kind::kAbove;
  return has_upper ? Kind::kBelow : Kind::kEquation;
}

double PyramidRows::base(int r) const {
  switch (kind(r)) {
    case Kind::kInterval:
    case Kind::kAbove:
      return lower[r];
    case Kind::kBelow:
      return upper[r];
    case Kind::kEquation:
      break;
  }
  return 0;
}

namespace {

// The factors of both unknowns of a row in its impulse.
std::array<double, PyramidRows::kUnknowns> factors_of(PyramidRows::Kind kind) {
  switch (kind) {
    case PyramidRows::Kind::kBelow:
      return {-1, 0};
    case PyramidRows::Kind::kEquation:
      return {1, -1};
    case PyramidRows::Kind::kInterval:
    case PyramidRows::Kind::kAbove:
      break;
  }
  return {1, 0};
}

// The entries of M in the rows or columns of constraints in one dimension.
void add_rows(int contacts, const Directions& directions, const PyramidRows& rows, const double* W, double* M) {
  const std::ptrdiff_t number = 3 * contacts + rows.count, each = directions.unknowns(), first = each * contacts;
  const std::ptrdiff_t size = unknowns_of(contacts, directions, rows);
  for (int r = 0; r < rows.count; ++r) {
    const PyramidRows::Kind kind = rows.kind(r);
    for (int i = 0; i < PyramidRows::kUnknowns; ++i) {
      const std::ptrdiff_t at = first + PyramidRows::kUnknowns * r + i;
      double* const row = M + at * size;
      pyramid_unknowns(contacts, directions, rows, W + (3 * contacts + r) * number, row);
      for (std::ptrdiff_t j = 0; j < size; ++j) row[j] *= factors_of(kind)[i];
      for (std::ptrdiff_t j = 0; j < first; ++j) M[j * size + at] = row[j];
    }
    double* const own = M + (first + PyramidRows::kUnknowns * r) * (size + 1);
    if (kind == PyramidRows::Kind::kInterval) {
      own[1] = 1;
      own[size] = -1;
    } else if (kind != PyramidRows::Kind::kEquation) {
      own[size + 1] = 1;
    }
  }
}

}  // namespace

void pyramid_matrix(int contacts, const Directions& directions, const PyramidRows& of_rows, const double* W,
                    const double* mu, double* M) {
  const std::ptrdiff_t rows = 3 * contacts + of_rows.count, each = directions.unknowns();
  const std::ptrdiff_t size = unknowns_of(contacts, directions, of_rows);
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
  if (of_rows.count > 0) add_rows(contacts, directions, of_rows, W, M);
}

void pyramid_impulses(int contacts, const Directions& directions, const PyramidRows& rows, const double* z, double* x) {
  for (std::ptrdiff_t i = 0; i < contacts; ++i, z += directions.unknowns(), x += 3) {
    x[0] = x[1] = 0;
    for (int k = 0; k < directions.count; ++k) {
      x[0] += directions.cosine[i * directions.stride + k] * z[1 + k];
      x[1] += directions.sine[i * directions.stride + k] * z[1 + k];
    }
    x[2] = z[0];
  }
  for (int r = 0; r < rows.count; ++r, z += PyramidRows::kUnknowns) {
    const auto factors = factors_of(rows.kind(r));
    *x++ = factors[0] * z[0] + factors[1] * z[1];
  }
}

void pyramid_unknowns(int contacts, const Directions& directions, const PyramidRows& rows, const double* x, double* z) {
  for (std::ptrdiff_t i = 0; i < contacts; ++i, z += directions.unknowns(), x += 3) {
    z[0] = x[2];
    for (int k = 0; k < directions.count; ++k) {
      z[1 + k] =
          directions.cosine[i * directions.stride + k] * x[0] + directions.sine[i * directions.stride + k] * x[1];
    }
    z[1 + directions.count] = 0;
  }
  for (int r = 0; r < rows.count; ++r, ++x) {
    for (const double factor : factors_of(rows.kind(r))) *z++ = factor * *x;
  }
}

void pyramid_offsets(int contacts, const Directions& directions, const PyramidRows& rows, const double* x, double* q) {
  pyramid_unknowns(contacts, directions, rows, x, q);
  q += contacts * directions.unknowns();
  for (int r = 0; r < rows.count; ++r, q += PyramidRows::kUnknowns) {
    const PyramidRows::Kind kind = rows.kind(r);
    if (kind != PyramidRows::Kind::kEquation)
      q[1] = kind == PyramidRows::Kind::kInterval ? rows.upper[r] - rows.lower[r] : 1;
  }
}

Pyramid::Pyramid(int contacts, int rows)
    : contacts_(contacts),
      rows_{rows},
      angle_(contacts),
      cosine_(static_cast<std::size_t>(kCount) * contacts),
      sine_(cosine_.size()),
      directions_{kCount, cosine_.data(), sine_.data(), kCount},
      lcp_(unknowns_of(contacts, directions_, rows_), {.max_pivots = {}, .quick = true}),
      q_(unknowns_of(contacts, directions_, rows_)),
      z_(q_.size()),
      w_(q_.size()),
      base_(3 * contacts + rows),
      u_(base_.size()) {
  M_.resize(q_.size() * q_.size());
}

bool Pyramid::solve(const Impulses& problem, const double* mu, double* h) {
  for (std::size_t i = 0; i < cosine_.size(); ++i) {
    const double angle = angle_[i / kCount] + 2 * std::numbers::pi / kCount * static_cast<double>(i % kCount);
    cosine_[i] = std::cos(angle);
    sine_[i] = std::sin(angle);
  }
  rows_ = {problem.rows, problem.lower, problem.upper};
  const int first = 3 * contacts_;
  for (int r = 0; r < problem.rows; ++r) base_[first + r] = rows_.base(r);
  problem.velocities(base_.data(), u_.data());
  pyramid_matrix(contacts_, directions_, rows_, problem.W, mu, M_.data());
  pyramid_offsets(contacts_, directions_, rows_, u_.data(), q_.data());
  // The row of a large mu is divided by this mu, so that its entries are like those of other rows.
  for (std::size_t k = 0; k < angle_.size(); ++k) {
    const std::size_t last = directions_.unknowns() * (k + 1) - 1;
    for (std::size_t j = 0; mu[k] > 1 && j < q_.size(); ++j) M_[last * q_.size() + j] /= mu[k];
  }
  if (lcp_.solve(M_.data(), q_.data(), nullptr, z_.data(), w_.data()) != Status::kSolved) return false;
  pyramid_impulses(contacts_, directions_, rows_, z_.data(), h);
  for (int r = 0; r < problem.rows; ++r) h[first + r] += base_[first + r];
  for (std::size_t k = 0; k < angle_.size(); ++k) {
    if (h[3 * k] != 0 || h[3 * k + 1] != 0) angle_[k] = std::atan2(h[3 * k + 1], h[3 * k]);
  }
  return true;
}

}  // namespace lcp::friction
