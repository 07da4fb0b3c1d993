#include "lcp/identification/motion_windows.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "lcp/physics/rotation.h"

namespace lcp::identification {
namespace {

using at::Tensor;
using physics::RigidState;

// Applies f to each tensor of a state.
template <class F>
RigidState mapped(const RigidState& state, const F& f) {
  return {f(state.position), f(state.orientation), f(state.velocity), f(state.angular_velocity)};
}

// The median of each five neighbours of those that are known, [T, ..., 3]; the ends are repeated.
Tensor filtered(const Tensor& x) {
  std::vector<std::int64_t> two(static_cast<std::size_t>(x.dim()), -1);
  two[0] = 2;
  const Tensor ends = at::cat({x.slice(0, 0, 1).expand(two), x, x.slice(0, -1).expand(two)});
  return std::get<0>(ends.unfold(0, 5, 1).nanmedian(-1));
}

// The rates of samples that are dt apart: the difference from the sample before, and at the first to the second.
Tensor rates(const Tensor& change, double dt) { return filtered(at::cat({change.slice(0, 0, 1), change}) / dt); }

// The rotation vectors, in the axes of the body, from each orientation to the next, [T - 1, ..., 3].
Tensor turns(const Tensor& q) {
  const Tensor between = physics::rotation_between(q.slice(0, 0, -1), q.slice(0, 1));
  const Tensor turn = between * at::where(between.slice(-1, 0, 1) < 0, -1.0, 1.0), vector = turn.slice(-1, 1);
  const Tensor sine = vector.norm(2, {-1}, true);
  const Tensor angle = 2 * at::atan2(sine, turn.slice(-1, 0, 1));
  return vector * at::where(sine > 1e-12, angle / sine, 2.0);
}

// Whether all numbers of a sample are known, [T].
Tensor complete(const RigidState& x) {
  return at::cat({x.position, x.orientation, x.velocity, x.angular_velocity}, -1).isfinite().all(-1).all(-1);
}

// The samples with at least one step behind them at which windows may begin: the state is complete and, where there are
// such samples, its velocity does not jump within two steps of them.
Tensor starts_of(const Recording& recording, double largest_jump) {
  constexpr std::int64_t kReach = 2;
  const std::int64_t steps = recording.position.size(0) - 1;
  const Tensor change = recording.velocity.diff(1, 0);
  const Tensor jumps = (change.norm(2, {-1}) > largest_jump).any(-1).nonzero().squeeze(1);
  Tensor calm = at::ones({steps}, at::kBool);
  for (std::int64_t k = 0; k < jumps.size(0); ++k) {
    const auto jump = jumps[k].item<std::int64_t>();
    calm.slice(0, std::max<std::int64_t>(0, jump - kReach + 1), jump + kReach + 1).fill_(false);
  }
  const Tensor known = complete(recording).slice(0, 0, steps);
  const Tensor samples = (calm & known).nonzero().squeeze(1);
  return samples.size(0) > 0 ? samples : known.nonzero().squeeze(1);
}

// What is known of vectors [..., k], and 0 for the rest.
struct Known {
  Tensor numbers, are;
};

Known known(const Tensor& x) {
  const Tensor are = x.isfinite();
  return {at::where(are, x, 0), are};
}

}  // namespace

Recording with_velocities(const Recording& recording, double dt) {
  const Tensor& p = recording.position;
  TORCH_CHECK(p.defined() && p.dim() == 3 && p.size(2) == 3 && p.size(0) >= 2,
              "position of a recording must be [samples >= 2, bodies, 3]; got ",
              p.defined() ? c10::str(p.sizes()) : "none");
  const auto check = [&](const char* name, const Tensor& x, std::int64_t size) {
    TORCH_CHECK(x.defined() && x.dim() == 3 && x.size(0) == p.size(0) && x.size(1) == p.size(1) && x.size(2) == size,
                name, " of a recording must be [", p.size(0), ", ", p.size(1), ", ", size, "]; got ",
                x.defined() ? c10::str(x.sizes()) : "none");
  };
  check("orientation", recording.orientation, 4);
  const auto number = [](const Tensor& x) { return x.detach().to(at::kCPU, at::kDouble); };
  Recording all{number(p), number(recording.orientation), {}, {}};
  constexpr double kUnit = 1e-12;  // the square of a length that differs from 1 by round-off
  const Tensor square = all.orientation.square().sum(-1, true);
  TORCH_CHECK(!(square <= 0).any().item<bool>(), "orientation of a recording must have quaternions other than 0");
  all.orientation = at::where((square - 1).abs() <= kUnit, all.orientation, all.orientation / square.sqrt());
  if (recording.velocity.defined()) check("velocity", recording.velocity, 3);
  if (recording.angular_velocity.defined()) check("angular_velocity", recording.angular_velocity, 3);
  all.velocity = recording.velocity.defined() ? number(recording.velocity) : rates(all.position.diff(1, 0), dt);
  all.angular_velocity =
      recording.angular_velocity.defined() ? number(recording.angular_velocity) : rates(turns(all.orientation), dt);
  return all;
}

MotionPieces MotionPieces::at(const Tensor& index) const {
  const auto rows = [&](const Tensor& x) { return x.defined() ? x.index_select(0, index) : x; };
  const auto columns = [&](const Tensor& x) { return x.index_select(1, index); };
  return {mapped(start, rows), mapped(measured, columns), rows(steps), rows(recording), rows(first)};
}

Tensor MotionPieces::exists() const { return at::arange(longest()).unsqueeze(1) < steps; }

RecordingSet::RecordingSet(const std::vector<Recording>& recordings) {
  TORCH_CHECK(!recordings.empty(), "recordings must have at least one recording");
  std::int64_t longest = 0;
  std::vector<std::int64_t> counts;
  for (const Recording& recording : recordings) {
    TORCH_CHECK(recording.position.size(1) == recordings.front().position.size(1),
                "recordings must be of the same number of bodies; got ", recordings.front().position.size(1), " and ",
                recording.position.size(1));
    counts.push_back(recording.position.size(0));
    longest = std::max(longest, counts.back());
  }
  const auto padded = [&](Tensor Recording::*member) {
    std::vector<Tensor> all;
    all.reserve(recordings.size());
    for (const Recording& recording : recordings) {
      const Tensor& x = recording.*member;
      all.push_back(x.index_select(0, at::arange(longest).clamp_max(x.size(0) - 1)));
    }
    return at::stack(all, 1);
  };
  all_ = {padded(&Recording::position), padded(&Recording::orientation), padded(&Recording::velocity),
          padded(&Recording::angular_velocity)};
  samples_ = at::tensor(counts, at::kLong);
}

MotionPieces RecordingSet::pieces(const Tensor& recording, const Tensor& first, std::int64_t steps) const {
  const Tensor count = (samples_.index_select(0, recording) - 1 - first).clamp_max(steps);
  const Tensor time = at::minimum(first + 1 + at::arange(count.max().item<std::int64_t>()).unsqueeze(1), first + count);
  const auto at_start = [&](const Tensor& x) { return x.index({first, recording}); };
  const auto after = [&](const Tensor& x) { return x.index({time, recording}); };
  return {mapped(all_, at_start), mapped(all_, after), count, recording, first};
}

MotionWindows::MotionWindows(const std::vector<Recording>& recordings, const MotionWindowsOptions& options)
    : set_(recordings), options_(options) {
  TORCH_CHECK(options.position_unit > 0 && options.rotation_unit > 0,
              "position_unit and rotation_unit must be > 0; got ", options.position_unit, " and ",
              options.rotation_unit);
  for (const Recording& recording : recordings) {
    starts_.push_back(starts_of(recording, options.jump));
    TORCH_CHECK(starts_.back().size(0) > 0, "recording ", starts_.size() - 1,
                " has no sample before its last with all coordinates, at which a window could begin");
  }
}

MotionPieces MotionWindows::draw(const Tensor& recording, std::int64_t count, std::int64_t steps,
                                 at::Generator random) const {
  const Tensor place = at::rand({recordings(), count}, std::move(random), at::kDouble).index_select(0, recording);
  std::vector<Tensor> first;
  for (std::int64_t k = 0; k < recording.size(0); ++k) {
    const auto index = recording[k].item<std::int64_t>();
    const Tensor& starts = starts_[static_cast<std::size_t>(index)];
    // Of the starts with enough steps behind them, or the first.
    const std::int64_t last = set_.samples()[index].item<std::int64_t>() - 1 - steps;
    const std::int64_t choice = std::max<std::int64_t>(1, (starts <= last).sum().item<std::int64_t>());
    first.push_back(starts.index_select(0, (place[k] * static_cast<double>(choice)).to(at::kLong)));
  }
  return set_.pieces(recording.repeat_interleave(count), at::cat(first), steps);
}

Tensor MotionWindows::residuals(const RollOut& roll_out, const MotionPieces& windows, double later) const {
  RigidState start = windows.start;
  if (later != 0) {
    const auto between = [&](const Tensor& now, const Tensor& next) {
      return now + later * (next - now).nan_to_num(0, 0, 0);
    };
    start.velocity = between(start.velocity, windows.measured.velocity[0]);
    start.angular_velocity = between(start.angular_velocity, windows.measured.angular_velocity[0]);
  }
  const physics::RigidSolution found = roll_out(start, windows.longest());
  // [T, b, B, k] as [T, ..., b, B, k].
  const auto beside = [&](Tensor x) {
    while (x.dim() < found.next.position.dim()) x = x.unsqueeze(1);
    return x;
  };
  const Known position = known(beside(windows.measured.position));
  const Known orientation = known(beside(windows.measured.orientation));
  const Tensor apart = (found.next.position - position.numbers) / options_.position_unit;
  const Tensor turn = physics::rotation_between(orientation.numbers, found.next.orientation);
  const Tensor both = at::stack({apart, (2 / options_.rotation_unit) * turn.slice(-1, 1)}, -2);
  const Tensor is_turn_known = orientation.are.all(-1, true).expand_as(position.are);
  const Tensor exists = beside(windows.exists().unsqueeze(-1).unsqueeze(-1)).unsqueeze(-1);
  const Tensor counts = at::stack({position.are, is_turn_known}, -2) & exists;
  return at::where(counts, both, 0).transpose(-4, -3);
}

Tensor MotionWindows::misfits(const RollOut& roll_out, const MotionPieces& windows, double later) const {
  constexpr double kFloor = 1e-2;
  const Tensor found = residuals(roll_out, windows, later);  // [T, ..., B, b, 2, 3]
  const Tensor lengths = (found.square().sum(-1) + kFloor * kFloor).sqrt().sum(-1).mean(-2);
  const auto seen = [](const Tensor& x) { return x.isfinite().any(-1).any(-1); };
  Tensor counts =
      windows.exists() & (seen(windows.measured.position) | windows.measured.orientation.isfinite().all(-1).any(-1));
  const Tensor steps = counts.sum(0).clamp_min(1);
  while (counts.dim() < lengths.dim()) counts = counts.unsqueeze(1);
  return at::where(counts, lengths, 0).sum(0) / steps;
}

Tensor MotionWindows::misfit(const RollOut& roll_out, const MotionPieces& windows, double later) const {
  Tensor found = misfits(roll_out, windows, later);
  const Tensor solved = found.isfinite();
  if (solved.all().item<bool>()) return found;
  TORCH_CHECK(solved.any().item<bool>(), "no window is solved");
  return misfit(roll_out, windows.at(solved.nonzero().squeeze(1)), later);
}

}  // namespace lcp::identification
