#include "rigid/certification.h"

#include <limits>

namespace lcp::rigid {

Certification::Certification(const Scene& scene, double tolerance, double rank_tolerance)
    : scene_(scene),
      rank_tolerance_(rank_tolerance),
      simulator_(scene, tolerance),
      derivatives_(scene),
      v_(scene.velocities()),
      gamma_(3 * scene.contacts()),
      u_(3 * scene.contacts()) {}

void Certification::run(std::int64_t steps, const Parameters<const double>& parameters, const WalkedPath& walked,
                        const StepCertificates& to) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  const int n = scene_.velocities(), rows = scene_.rows();
  simulator_.begin(parameters);
  for (std::int64_t s = 0; s < steps; ++s) {
    *to.residual[s] = *to.margin[s] = *to.gap[s] = kNaN;
    if (s > 0 && *walked.status[s - 1] != 0) continue;
    const bool is_solved = *walked.status[s] == 0;
    const State<const double> before = walked.before(s), end = is_solved ? walked.path.state(s) : before;
    if (!simulator_.pose_all(parameters, before, walked.u[s], end)) continue;
    *to.gap[s] = simulator_.least_gap();
    if (!is_solved) continue;
    const std::span<const int> chosen = simulator_.chosen();
    const int contacts = static_cast<int>(chosen.size()) - rows;
    const ContactProblem problem = simulator_.posed();
    for_each_velocity(scene_, [&](int k, StatePart part, int i) { v_[k] = end[part][i]; });
    for_each_impulse(scene_, chosen, [&](int i, int j) { gamma_[i] = walked.path.gamma[s][j]; });
    contact_velocities(3 * contacts + rows, n, problem, v_.data(), u_.data());
    add_compliance(contacts, rows, problem, gamma_.data(), u_.data());
    friction::Certificate found = {};
    if (!derivatives_.get(contacts, n, contacts, rank_tolerance_, false, rows)
             .certify({problem.A, problem.v_free, problem.J, problem.b, problem.mu, problem.lower, problem.upper,
                       problem.compliance},
                      {v_.data(), gamma_.data(), u_.data()}, found)) {
      continue;
    }
    *to.residual[s] = found.residual;
    *to.margin[s] = found.unique ? found.margin : 0;
  }
}

}  // namespace lcp::rigid
