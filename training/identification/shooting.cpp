#include "identification/shooting.h"

#include <ATen/ATen.h>

#include "common/text.h"

namespace lcp::training {
namespace {

using identification::least_squares;
using identification::LeastSquares;
using identification::LeastSquaresOptions;
using torch::Tensor;

constexpr double kStarts[] = {0.02, 0.05, 0.1, 0.2, 0.4, 0.8};

// Of each problem the fit of `b` where `mask`, else of `a`.
LeastSquares choose(const Tensor& mask, const LeastSquares& b, const LeastSquares& a) {
  const auto pick = [&](const Tensor& x, const Tensor& y) {
    Tensor m = mask;
    while (m.dim() < x.dim()) m = m.unsqueeze(-1);
    return at::where(m, x, y);
  };
  return {pick(b.theta, a.theta),       pick(b.objective, a.objective),   pick(b.residuals, a.residuals),
          pick(b.jacobian, a.jacobian), pick(b.iterations, a.iterations), pick(b.status, a.status)};
}

}  // namespace

void ShootingFlags::add_to(CommandLine& line) {
  line.add<std::string>("escape", escape, "Where mu has no effect: starts (again from several mu) or none",
                        one_of({"starts", "none"}));
  line.add<std::int64_t>("iterations", iterations, "At most, of each start", at_least_one);
}

Shot shoot(const ParticleModel& model, double mu, const ShootingFlags& flags) {
  const LeastSquaresOptions options{.max_iterations = flags.iterations, .lower = model.lower()};
  const auto residuals = [&](const Tensor& theta) { return model.residuals(theta); };
  Shot shot{least_squares(residuals, model.start(mu), options), {}};
  shot.escaped = (shot.fit.jacobian.select(-1, 0) == 0).all(-1);
  if (flags.escape == "none") shot.escaped.fill_(false);
  if (!shot.escaped.any().item<bool>()) return shot;
  for (const double start : kStarts) {
    const LeastSquares other = least_squares(residuals, model.start(start), options);
    const Tensor iterations = shot.fit.iterations + at::where(shot.escaped, other.iterations, 0);
    shot.fit = choose(shot.escaped & (other.objective < shot.fit.objective), other, shot.fit);
    shot.fit.iterations = iterations;
  }
  return shot;
}

}  // namespace lcp::training
