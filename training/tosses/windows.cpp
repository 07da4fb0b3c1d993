#include "tosses/windows.h"

#include <ATen/ATen.h>
#include <ATen/core/Generator.h>

#include <algorithm>
#include <utility>

#include "lcp/physics/rotation.h"

namespace lcp::training {
namespace {

using torch::Tensor;

// The samples of a toss with at least one step behind them and without a jump of the velocity within two steps of them.
// Free flight and rest change the velocity by at most dt g in a step, sliding and rolling by little more.
Tensor trusted(const Toss& toss, double gravity, double rate) {
  constexpr double kJump = 3;  // in units of dt g
  constexpr std::int64_t kReach = 2;
  const Tensor change = toss.velocity.diff(1, 0);
  const Tensor jumps = (change.norm(2, {1}) > kJump * gravity / rate).nonzero().squeeze(1);
  Tensor calm = at::ones({toss.count() - 1}, at::kBool);
  for (std::int64_t k = 0; k < jumps.size(0); ++k) {
    const auto jump = jumps[k].item<std::int64_t>();
    calm.slice(0, std::max<std::int64_t>(0, jump - kReach + 1), jump + kReach + 1).fill_(false);
  }
  const Tensor samples = calm.nonzero().squeeze(1);
  return samples.size(0) > 0 ? samples : at::arange(toss.count() - 1);
}

}  // namespace

Windows::Windows(const std::vector<Toss>& tosses, double side, double gravity, double rate)
    : set_(tosses), side_(side) {
  for (const Toss& toss : tosses) starts_.push_back(trusted(toss, gravity, rate));
}

Segments Windows::draw(const Tensor& toss, std::int64_t count, std::int64_t steps, at::Generator random) const {
  const Tensor place = at::rand({tosses(), count}, std::move(random), at::kDouble).index_select(0, toss);
  std::vector<Tensor> first;
  for (std::int64_t k = 0; k < toss.size(0); ++k) {
    const auto index = toss[k].item<std::int64_t>();
    const Tensor& starts = starts_[static_cast<std::size_t>(index)];
    // Of the starts with enough steps behind them, or the first.
    const std::int64_t last = set_.samples()[index].item<std::int64_t>() - 1 - steps;
    const std::int64_t choice = std::max<std::int64_t>(1, (starts <= last).sum().item<std::int64_t>());
    first.push_back(starts.index_select(0, (place[k] * static_cast<double>(choice)).to(at::kLong)));
  }
  return set_.pieces(toss.repeat_interleave(count), at::cat(first), steps);
}

Tensor Windows::residuals(const TossModel& model, const Segments& windows) const {
  constexpr double kPosition = 0.12, kRotation = 0.27;
  const physics::RigidSolution found = model.roll_out(windows.start, windows.longest());
  const Tensor apart = (found.next.position.squeeze(-2) - windows.position) / (kPosition * side_);
  const Tensor turn = physics::rotation_between(windows.orientation, found.next.orientation.squeeze(-2));
  const Tensor both = at::stack({apart, (2 / kRotation) * turn.slice(-1, 1)}, -2);
  return at::where(windows.exists().unsqueeze(-1).unsqueeze(-1), both, 0);
}

Tensor Windows::misfit(const TossModel& model, const Segments& windows) const {
  Tensor found = misfits(model, windows);
  const Tensor solved = found.isfinite();
  if (solved.all().item<bool>()) return found;
  TORCH_CHECK(solved.any().item<bool>(), "no window is solved");
  return misfit(model, windows.at(solved.nonzero().squeeze(1)));
}

Tensor Windows::misfits(const TossModel& model, const Segments& windows) const {
  constexpr double kFloor = 1e-2;
  const Tensor found = residuals(model, windows);
  const Tensor lengths = (found.square().sum(-1) + kFloor * kFloor).sqrt().sum(-1);
  return at::where(windows.exists(), lengths, 0).sum(0) / windows.steps;
}

}  // namespace lcp::training
