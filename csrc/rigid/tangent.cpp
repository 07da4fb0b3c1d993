#include "rigid/tangent.h"

#include <algorithm>
#include <limits>

#include "interrupt/checkpoint.h"

namespace lcp::rigid {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

}  // namespace

Tangent::Tangent(const Scene& scene, double tolerance, double rank_tolerance, Ties ties)
    : scene_(scene), step_(scene, tolerance, rank_tolerance, ties), carried_(scene.bodies) {}

void Tangent::run(std::int64_t steps, const Parameters<const double>& parameters, const WalkedPath& walked,
                  const Direction& along, const Path<double>& to) {
  const int bodies = scene_.bodies, contacts = scene_.contacts();
  std::array<bool, kParameters> varies;
  bool moves = false;  // whether the direction is not 0, until now
  const auto look = [&](const double* x, int size) {
    moves = moves || (x != nullptr && std::any_of(x, x + size, [](double number) { return number != 0; }));
  };
  for (int k = 0; k < kParameters; ++k) {
    varies[k] = along.parameters[k] != nullptr;
    look(along.parameters[k], size_of(static_cast<Parameter>(k), scene_));
  }
  step_.begin(parameters, varies, along.u.data != nullptr);
  const auto set = [&](const double* x, std::vector<double>& tangent) {
    look(x, static_cast<int>(tangent.size()));
    if (x != nullptr) std::copy_n(x, tangent.size(), tangent.begin());
    if (x == nullptr) std::fill(tangent.begin(), tangent.end(), 0.0);
  };
  set(along.first.position, carried_.position);
  set(along.first.orientation, carried_.orientation);
  set(along.first.velocity, carried_.velocity);
  set(along.first.angular_velocity, carried_.angular_velocity);
  interrupt::Pace pace;
  for (std::int64_t s = 0; s < steps; ++s) {
    pace.spend(2000 * (bodies + contacts));
    const double* const du = along.u.data != nullptr ? along.u[s] : nullptr;
    look(du, 6 * bodies);
    if (!moves) {
      std::fill_n(to.gamma[s], 3 * contacts, 0.0);
    } else if (*walked.status[s] == 0) {
      step_.record(s, walked);
      step_.forward(carried_, along.parameters, du, to.gamma[s]);
    } else {
      std::fill_n(to.gamma[s], 3 * contacts, kNaN);
      for_each_part(carried_, [](std::vector<double>& x) { std::fill(x.begin(), x.end(), kNaN); });
    }
    const State<double> next = to.state(s);
    std::copy(carried_.position.begin(), carried_.position.end(), next.position);
    std::copy(carried_.orientation.begin(), carried_.orientation.end(), next.orientation);
    std::copy(carried_.velocity.begin(), carried_.velocity.end(), next.velocity);
    std::copy(carried_.angular_velocity.begin(), carried_.angular_velocity.end(), next.angular_velocity);
  }
}

}  // namespace lcp::rigid
