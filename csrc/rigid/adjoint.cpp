#include "rigid/adjoint.h"

#include <algorithm>
#include <limits>

#include "interrupt/checkpoint.h"

namespace lcp::rigid {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

void add(const double* x, std::vector<double>& to) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += x[i];
}

// Sets the gradients of all parameters that are asked for to one number.
void fill(const Scene& scene, const Parameters<double>& to, double number) {
  for (int k = 0; k < kParameters; ++k) {
    if (to[k] != nullptr) std::fill_n(to[k], size_of(static_cast<Parameter>(k), scene), number);
  }
}

}  // namespace

Adjoint::Adjoint(const Scene& scene, double tolerance, double rank_tolerance, Ties ties)
    : scene_(scene), step_(scene, tolerance, rank_tolerance, ties) {}

void Adjoint::run(std::int64_t steps, const Parameters<const double>& parameters, const WalkedPath& walked,
                  std::span<const Path<const double>> gradients, std::span<const Gradients> to) {
  const int bodies = scene_.bodies;
  const Parameters<double>& first = to.front().parameters;
  std::array<bool, kParameters> varies;
  std::transform(first.begin(), first.end(), varies.begin(), [](double* x) { return x != nullptr; });
  step_.begin(parameters, varies, to.front().u.data != nullptr);
  reset(gradients.size(), scene_, carried_);
  for (const Gradients& each : to) fill(scene_, each.parameters, 0);
  interrupt::Pace pace;
  for (std::int64_t s = steps - 1; s >= 0; --s) {
    bool is_recorded = false;
    for (std::size_t k = 0; k < gradients.size(); ++k) {
      pace.spend(2000 * (bodies + scene_.contacts()));
      double* const to_u = to[k].u.data != nullptr ? to[k].u[s] : nullptr;
      if (to_u != nullptr) std::fill_n(to_u, inputs_of(scene_), 0.0);
      if (!gather(s, walked, gradients[k], carried_[k])) continue;
      if (*walked.status[s] != 0) {
        fail(s, to[k], carried_[k]);
        continue;
      }
      if (!is_recorded) step_.record(s, walked);
      is_recorded = true;
      step_.reverse(carried_[k], gradients[k].gamma[s], to[k].parameters, to_u);
    }
  }
  for (std::size_t k = 0; k < to.size(); ++k) {
    for (std::size_t part = 0; part < kStateParts; ++part) {
      const std::vector<double>& gradient = carried_[k][part];
      if (to[k].first[part] != nullptr) std::copy(gradient.begin(), gradient.end(), to[k].first[part]);
    }
  }
}

// Adds the given gradients of the end of step s to those that are carried to it. Returns whether any of them, or of
// those of its impulses, is not 0.
bool Adjoint::gather(std::int64_t s, const WalkedPath& walked, const Path<const double>& gradient, Carried& carried) {
  const State<const double> given = gradient.state(s);
  bool any = false;
  const auto count = [&](double number) { any = any || number != 0; };
  for (std::size_t part = 0; part < kStateParts; ++part) {
    add(given[part], carried[part]);
    std::for_each(carried[part].begin(), carried[part].end(), count);
  }
  for (int k = 0; k < scene_.contacts(); ++k) {
    if (*walked.status[s] != 0 || scene_.law.kappa > 0 || walked.chosen[s][k] != kNotChosen) {
      std::for_each_n(gradient.gamma[s] + 3 * k, 3, count);
    }
  }
  return any;
}

// The gradients that go through a step that was not solved.
void Adjoint::fail(std::int64_t s, const Gradients& to, Carried& carried) {
  fill(scene_, to.parameters, kNaN);
  if (to.u.data != nullptr) std::fill_n(to.u[s], inputs_of(scene_), kNaN);
  for (std::vector<double>& part : carried) std::fill(part.begin(), part.end(), kNaN);
}

}  // namespace lcp::rigid
