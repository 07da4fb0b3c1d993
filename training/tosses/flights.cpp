#include "tosses/flights.h"

#include <ATen/ATen.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "lcp/identification/interval.h"
#include "lcp/physics/rotation.h"
#include "run/error.h"

namespace lcp::training {
namespace {

using Eigen::Index, Eigen::MatrixXd, Eigen::VectorXd;
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr Index kUnknowns = 5;  // gravity, the centre, drag

// The equations of a flight, left x = right, from which what p_0 and v_0 explain has been removed.
struct Equations {
  MatrixXd left;
  VectorXd right;
};

// The number of samples from the first on at which the body cannot have touched the ground, nor would before the next
// if it went on as from the one before: a body that lands on a corner may be too high to touch at all samples.
Index flying(const Toss& toss, double reach) {
  const double* const position = toss.position.const_data_ptr<double>();
  const auto z = [&](Index k) { return position[3 * k + 2]; };
  const auto lowest = [&](Index k) { return k == 0 ? z(k) : std::min(z(k), 2 * z(k) - z(k - 1)); };
  Index n = 0;
  while (n < toss.count() && lowest(n) > reach) ++n;
  return n;
}

Equations equations_of(const Toss& toss, Index n, double rate) {
  const torch::Tensor rotation = physics::rotation_matrix(toss.orientation).contiguous();
  const Eigen::Map<const Matrix> position(toss.position.const_data_ptr<double>(), toss.count(), 3);
  const Eigen::Map<const Matrix> R(rotation.const_data_ptr<double>(), 3 * toss.count(), 3);
  const VectorXd time = VectorXd::LinSpaced(n, 0, static_cast<double>(n - 1) / rate);
  MatrixXd own(n, 2);
  own << VectorXd::Ones(n), time;
  const auto projection = own.householderQr();
  const auto rest = [&](const VectorXd& x) -> VectorXd { return x - own * projection.solve(x); };
  Equations all{MatrixXd::Zero(3 * n, kUnknowns), VectorXd(3 * n)};
  for (Index axis = 0; axis < 3; ++axis) {
    const auto column = [&](Index k) { return all.left.col(k).segment(axis * n, n); };
    const VectorXd p = position.col(axis).head(n);
    all.right.segment(axis * n, n) = rest(p);
    if (axis == 2) column(0) = rest(-0.5 * time.cwiseAbs2());
    VectorXd entries(n), travelled = VectorXd::Zero(n);
    for (Index i = 0; i < 3; ++i) {
      for (Index k = 0; k < n; ++k) entries[k] = R(3 * k + axis, i);
      column(1 + i) = rest(entries);
    }
    for (Index k = 1; k < n; ++k) travelled[k] = travelled[k - 1] + ((p[k] + p[k - 1]) / 2 - p[0]) / rate;
    column(4) = rest(-travelled);
  }
  return all;
}

// The first `unknowns` of them.
std::vector<Estimate> least_squares(const std::vector<Equations>& flights, Index unknowns) {
  MatrixXd normal = MatrixXd::Zero(unknowns, unknowns), scatter = normal;
  VectorXd sum = VectorXd::Zero(unknowns);
  for (const Equations& flight : flights) {
    const auto left = flight.left.leftCols(unknowns);
    normal += left.transpose() * left;
    sum += left.transpose() * flight.right;
  }
  const MatrixXd inverse = normal.completeOrthogonalDecomposition().pseudoInverse();
  const VectorXd found = inverse * sum;
  for (const Equations& flight : flights) {
    const auto left = flight.left.leftCols(unknowns);
    const VectorXd slope = left.transpose() * (flight.right - left * found);
    scatter += slope * slope.transpose();
  }
  const MatrixXd covariance = inverse * scatter * inverse;
  std::vector<Estimate> estimates;
  for (Index k = 0; k < unknowns; ++k) {
    const double half = identification::half_width_95(static_cast<std::int64_t>(flights.size()), unknowns) *
                        std::sqrt(covariance(k, k));
    estimates.push_back({found[k], found[k] - half, found[k] + half});
  }
  return estimates;
}

}  // namespace

Flights fit_flights(const std::vector<Toss>& tosses, const BodyForm& form, double rate) {
  constexpr Index kFewest = 8;
  std::vector<Equations> flights;
  for (const Toss& toss : tosses) {
    const Index n = flying(toss, form.reach);
    if (n >= kFewest) flights.push_back(equations_of(toss, n, rate));
  }
  if (flights.size() < 2) {
    throw UsageError(
        "fewer than two of the tosses to learn from fly for " + std::to_string(kFewest) +
        " samples before they can touch the ground, so that gravity cannot be told; is --length-unit right?");
  }
  const std::vector<Estimate> damped = least_squares(flights, kUnknowns);
  Flights found = {damped[0], {damped[1], damped[2], damped[3]}, damped[4], static_cast<std::int64_t>(flights.size())};
  if (found.seen_drag() == 0) {
    const std::vector<Estimate> undamped = least_squares(flights, kUnknowns - 1);
    found.gravity = undamped[0];
    std::copy_n(undamped.begin() + 1, 3, found.center);
  }
  return found;
}

}  // namespace lcp::training
