#include "rigid/tangent.h"

#include <algorithm>
#include <limits>

#include "interrupt/checkpoint.h"

namespace lcp::rigid {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

bool is_any(const double* x, int size) {
  return std::any_of(x, x + size, [](double number) { return number != 0; });
}

}  // namespace

Tangent::Tangent(const Scene& scene, double tolerance, double rank_tolerance, Ties ties)
    : scene_(scene), step_(scene, tolerance, rank_tolerance, ties) {}

void Tangent::run(std::int64_t steps, const Parameters<const double>& parameters, const WalkedPath& walked,
                  std::span<const Direction> along, std::span<const Path<double>> to) {
  const int bodies = scene_.bodies, contacts = scene_.contacts();
  std::array<bool, kParameters> varies;
  for (int i = 0; i < kParameters; ++i) varies[i] = along.front().parameters[i] != nullptr;
  step_.begin(parameters, varies, along.front().u.data != nullptr);
  reset(along.size(), scene_, carried_);
  moves_.assign(along.size(), 0);
  for (std::size_t k = 0; k < along.size(); ++k) {
    const auto look = [&](const double* x, int size) {
      if (x != nullptr && is_any(x, size)) moves_[k] = 1;
    };
    for (int i = 0; i < kParameters; ++i) {
      look(along[k].parameters[i], size_of(static_cast<Parameter>(i), scene_));
    }
    const auto set = [&](const double* x, std::vector<double>& tangent) {
      look(x, static_cast<int>(tangent.size()));
      if (x != nullptr) std::copy_n(x, tangent.size(), tangent.begin());
    };
    for (std::size_t part = 0; part < kStateParts; ++part) set(along[k].first[part], carried_[k][part]);
  }
  interrupt::Pace pace;
  for (std::int64_t s = 0; s < steps; ++s) {
    bool is_recorded = false;
    for (std::size_t k = 0; k < along.size(); ++k) {
      pace.spend(2000 * (bodies + contacts));
      StateBuffer<double>& carried = carried_[k];
      const double* const du = along[k].u.data != nullptr ? along[k].u[s] : nullptr;
      if (du != nullptr && is_any(du, inputs_of(scene_))) moves_[k] = 1;
      if (!moves_[k]) {
        std::fill_n(to[k].gamma[s], 3 * contacts, 0.0);
      } else if (*walked.status[s] == 0) {
        if (!is_recorded) step_.record(s, walked);
        is_recorded = true;
        step_.forward(carried, along[k].parameters, du, to[k].gamma[s]);
      } else {
        std::fill_n(to[k].gamma[s], 3 * contacts, kNaN);
        for (std::vector<double>& part : carried) std::fill(part.begin(), part.end(), kNaN);
      }
      const State<double> next = to[k].state(s);
      for (std::size_t part = 0; part < kStateParts; ++part) {
        std::copy(carried[part].begin(), carried[part].end(), next[part]);
      }
    }
  }
}

}  // namespace lcp::rigid
