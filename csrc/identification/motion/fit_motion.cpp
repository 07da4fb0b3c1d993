#include "lcp/identification/fit_motion.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/optim/adam.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "identification/motion/random.h"
#include "lcp/detail/one_thread.h"
#include "lcp/identification/interval.h"
#include "lcp/physics/rotation.h"

namespace lcp::identification {
namespace {

using motion::generator;
using motion::Stream;
using torch::Tensor;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kLargestGradient = 1;  // of Adam, beyond which a gradient is scaled down

// Recordings that are rolled out at once, as in the programs, whose processes divide them: the rounding of a gradient
// depends on it.
constexpr std::int64_t kChunk = 8;

void check(const FitMotionOptions& options) {
  TORCH_CHECK(options.iterations >= 0, "iterations must be >= 0; got ", options.iterations);
  TORCH_CHECK(options.learning_rate > 0, "learning_rate must be > 0; got ", options.learning_rate);
  TORCH_CHECK(options.window >= 2, "window must be >= 2; got ", options.window);
  TORCH_CHECK(options.batch >= 1, "batch must be >= 1; got ", options.batch);
  TORCH_CHECK(options.starts >= 1, "starts must be >= 1; got ", options.starts);
  TORCH_CHECK(options.spread >= 0 && std::isfinite(options.spread), "spread must be finite and >= 0; got ",
              options.spread);
  TORCH_CHECK(options.seed >= 0 && options.seed < std::int64_t{1} << 32, "seed must be in [0, 2^32); got ",
              options.seed);
  TORCH_CHECK(!options.position_unit || *options.position_unit > 0, "position_unit must be > 0; got ",
              *options.position_unit);
  TORCH_CHECK(options.rotation_unit > 0, "rotation_unit must be > 0; got ", options.rotation_unit);
  TORCH_CHECK(!options.velocity_age || std::isfinite(*options.velocity_age), "velocity_age must be finite; got ",
              *options.velocity_age);
  if (options.start_deviations) {
    const StateDeviations& d = *options.start_deviations;
    const bool fits = d.position > 0 && d.rotation > 0 && d.velocity > 0 && d.angular_velocity > 0;
    TORCH_CHECK(fits && options.intervals, "start_deviations must be > 0, and need intervals; got ", d.position, ", ",
                d.rotation, ", ", d.velocity, " and ", d.angular_velocity);
  }
  TORCH_CHECK(!options.jump || *options.jump > 0, "jump must be > 0; got ", *options.jump);
}

MotionWindowsOptions windows_options(const MotionScene& at, const FitMotionOptions& options) {
  constexpr double kUsualError = 0.12;  // of the size of a body, beside .27 rad
  constexpr double kJump = 3;           // in units of dt g
  double size = 0;
  for (const physics::RigidBody& body : at.scene.bodies) size += size_of(body);
  size /= static_cast<double>(at.scene.bodies.size());
  TORCH_CHECK(size > 0 || options.position_unit, "position_unit must be given for bodies without balls");
  const double fall = at.scene.dt * at.scene.gravity.norm().item<double>();
  return {options.jump.value_or(fall > 0 ? kJump * fall : std::numeric_limits<double>::infinity()),
          options.position_unit.value_or(kUsualError * size), options.rotation_unit};
}

MotionPieces fixed_windows(const MotionWindows& windows, const FitMotionOptions& options, std::int64_t of_each) {
  return windows.draw(at::arange(windows.recordings()), of_each, options.window,
                      generator(options.seed, Stream::kWindows, options.iterations));
}

MotionWindows::RollOut rolled_out(const MotionModel& model, const Tensor& values) {
  return [&model, values](const physics::RigidState& start, std::int64_t steps) {
    return model.roll_out(values, start, steps);
  };
}

// How much later than the recorded velocities those of a rollout are, in samples.
double later_by(const FitMotionOptions& options, const MotionModel& model) {
  const auto substeps = static_cast<double>(model.options().substeps);
  return options.velocity_age ? *options.velocity_age - 1 / (2 * substeps) : 0;
}

// The states at which windows begin with errors of their own, [b, 12 B], in units of their standard deviations.
physics::RigidState with_errors(const physics::RigidState& start, const Tensor& errors, const StateDeviations& unit) {
  const Tensor e = errors.unflatten(-1, {-1, 4, 3});  // [b, B, 4, 3]
  const auto part = [&](std::int64_t k, double size) { return size * e.select(-2, k); };
  return {start.position + part(0, unit.position), physics::turned(start.orientation, part(1, unit.rotation)),
          start.velocity + part(2, unit.velocity), start.angular_velocity + part(3, unit.angular_velocity)};
}

// Adam from several starts at once.
class Training {
 public:
  Training(const MotionModel& model, const MotionWindows& windows, const FitMotionOptions& options)
      : model_(model), windows_(windows), options_(options) {
    const std::int64_t p = model.numbers();
    theta_ = at::zeros({options.starts, p}, at::kDouble);
    theta_.slice(0, 1).copy_(options.spread *
                             at::randn({options.starts - 1, p}, generator(options.seed, Stream::kStarts), at::kDouble));
  }

  void run() {
    const std::int64_t count = windows_.recordings(), batch = std::min(options_.batch, count), batches = count / batch;
    theta_.set_requires_grad(true);
    torch::optim::Adam optimizer({theta_}, torch::optim::AdamOptions(options_.learning_rate));
    Tensor order;
    for (std::int64_t k = 0; k < options_.iterations; ++k) {
      const double done = static_cast<double>(k) / static_cast<double>(options_.iterations);
      if (k % batches == 0) {
        order = at::randperm(count, generator(options_.seed, Stream::kMinibatches, k / batches), at::kLong);
      }
      const std::int64_t first = k % batches * batch;
      const double misfit = differentiate(order.slice(0, first, first + batch), k);
      optimizer.param_groups()[0].options().set_lr(motion_stage(options_, done).step_size);
      optimizer.step();
      if (options_.progress) {
        options_.progress({false, static_cast<double>(k + 1) / static_cast<double>(options_.iterations), misfit});
      }
    }
    theta_ = theta_.detach();
  }

  const Tensor& theta() const { return theta_; }
  std::int64_t unsolved() const { return unsolved_; }

  // The misfit of windows at each start, [starts]; NaN where none is solved.
  Tensor misfits(const MotionPieces& pieces) const {
    const c10::NoGradGuard no_grad;
    const Tensor values = model_.values_at(theta_).unsqueeze(-2);
    return windows_.misfits(rolled_out(model_, values), pieces, later_by(options_, model_)).nanmean(-1);
  }

 private:
  // Gives theta the gradient of the misfit of windows of these recordings, and returns the least misfit of a start.
  double differentiate(const Tensor& recordings, std::int64_t iteration) {
    const at::AutoGradMode enabled(true);
    Tensor gradient = at::zeros_like(theta_.detach()), misfits = at::zeros({options_.starts}, at::kDouble);
    for (const Tensor& chunk : recordings.split(kChunk)) {
      const double weight = static_cast<double>(chunk.size(0)) / static_cast<double>(recordings.size(0));
      const MotionPieces pieces = windows_of_iteration(windows_, chunk, options_, iteration);
      theta_.mutable_grad() = Tensor();
      const Tensor misfit = weight * misfit_of(pieces);
      if (misfit.requires_grad()) misfit.sum().backward();
      const c10::NoGradGuard no_grad;
      misfits += misfit.detach();
      if (theta_.grad().defined()) gradient += theta_.grad();
    }
    const c10::NoGradGuard no_grad;
    TORCH_CHECK(gradient.isfinite().all().item<bool>(), "the misfit has a gradient that is not finite in iteration ",
                iteration, "; a smaller learning_rate may help");
    const Tensor scale = (kLargestGradient / (gradient.norm(2, {-1}, true) + 1e-6)).clamp_max(1);
    theta_.mutable_grad() = gradient * scale;
    return misfits.min().item<double>();
  }

  // The misfit of each start, [starts]: the mean over the windows that the start solves. A start that solves none has 0
  // and no gradient.
  Tensor misfit_of(const MotionPieces& pieces) {
    const double later = later_by(options_, model_);
    const Tensor values = model_.values_at(theta_);
    const Tensor found = windows_.misfits(rolled_out(model_, values.unsqueeze(-2)), pieces, later);
    const Tensor solved = found.isfinite();
    if (solved.all().item<bool>()) return found.mean(-1);
    unsolved_ += (~solved).sum().item<std::int64_t>();
    std::vector<Tensor> means;
    for (std::int64_t k = 0; k < options_.starts; ++k) {
      const bool any = solved[k].any().item<bool>();
      means.push_back(any ? windows_.misfit(rolled_out(model_, values[k]), pieces, later).mean()
                          : at::zeros({}, at::kDouble));
    }
    return at::stack(means);
  }

  const MotionModel& model_;
  const MotionWindows& windows_;
  const FitMotionOptions& options_;
  Tensor theta_;  // [starts, p]
  std::int64_t unsolved_ = 0;
};

// Which numbers take part in a change that no window depends on, [p], bool, such as that of all masses and moments of
// inertia by the same factor. The differences of least_lengths cannot tell, since each of them has an error of its own,
// which does not cancel in the sum. The derivatives of random sums of the residuals of each window can: a change has no
// effect where it is normal to all of them, and where the residuals do not change at a distance, either.
Tensor are_blind(const MotionModel& model, const MotionWindows& windows, const MotionPieces& pieces, const Tensor& at,
                 double later, const at::Generator& random) {
  constexpr double kNoEffect = 1e-8, kTakesPart = 1e-6, kFar = 0.02, kChange = 1e-3, kFew = 0.02;
  const std::int64_t p = at.size(0), b = pieces.count(), sums = 1 + 2 * p / b;
  const auto residuals = [&](const Tensor& numbers) {
    return windows.residuals(rolled_out(model, model.values_at(numbers)), pieces, later);
  };
  std::vector<Tensor> all;
  {
    const at::AutoGradMode enabled(true);
    const Tensor of_each = at.expand({b, p}).clone().requires_grad_();  // each window has numbers of its own
    const Tensor r = residuals(of_each), known = at::where(r.isfinite(), r, 0);
    for (std::int64_t k = 0; k < sums; ++k) {
      const Tensor sum = (known * at::randn(r.sizes(), random, at::kDouble)).sum();
      all.push_back(torch::autograd::grad({sum}, {of_each}, {}, /*retain_graph=*/k + 1 < sums)[0]);
    }
  }
  const Tensor rows = at::cat(all), size = rows.norm(2, {1});
  const Tensor directions = (rows / size.unsqueeze(1)).index({size.isfinite() & (size > 0)});
  const detail::OneThread one_thread;
  const Tensor gram = directions.t().matmul(directions), length = gram.diagonal().sqrt();
  const Tensor scale = at::where(length > 0, length.reciprocal(), 1);
  const auto [values, vectors] = at::linalg_eigh(scale.unsqueeze(1) * gram * scale);
  Tensor blind = at::zeros({p}, at::kBool);
  for (std::int64_t k = 0; k < p; ++k) {
    if (values[k].item<double>() > kNoEffect * values[p - 1].item<double>()) break;
    const Tensor change = scale * vectors.select(1, k), step = kFar / change.abs().amax() * change;
    const Tensor moved = (residuals(at + step) - residuals(at - step)).norm(2, {-1});
    const double share = (~(moved <= kChange)).to(at::kDouble).mean().item<double>();
    if (share <= kFew) blind = blind | (vectors.select(1, k).square() > kTakesPart);
  }
  return blind;
}

// How far the values, [v], may be off for numbers that may be off by half, [p], to both sides.
struct Ends {
  Tensor low, high, bias, seen;
};

Ends ends_of(const MotionModel& model, const Tensor& at, const Tensor& half, const Tensor& covariance,
             const Tensor& bias) {
  constexpr double kUnseen = 5, kStep = 1e-4;
  const Tensor value = model.values_at(at);
  const Tensor seen_numbers = half <= kUnseen;
  const Tensor finite = at::where(seen_numbers, half, 0);
  const Tensor low_at = model.values_at(at - finite), high_at = model.values_at(at + finite);
  const Tensor unbiased = model.values_at(at - bias);
  Ends ends{low_at.clone(), high_at.clone(), value - unbiased, at::ones_like(value, at::kBool)};
  std::int64_t number = 0, next = 0;
  for (const MotionParameter& parameter : model.parameters()) {
    const std::int64_t size = parameter.start.numel();
    if (parameter.range != MotionRange::kPositiveDefinite) {
      ends.seen.narrow(0, next, size).copy_(seen_numbers.narrow(0, number, size));
      number += size;
      next += size;
      continue;
    }
    // The values depend on all numbers together: to first order.
    const std::int64_t n = parameter.start.size(-1), count = n * (n + 1) / 2;
    const Tensor moves = kStep * at::eye(at.size(0), at.options()).narrow(0, number, count);
    const Tensor J =
        ((model.values_at(at + moves) - model.values_at(at - moves)) / (2 * kStep)).narrow(-1, next, size).t();
    const Tensor C = covariance.narrow(0, number, count).narrow(1, number, count);
    const Tensor reach =
        (J.matmul(C) * J).sum(-1).clamp_min(0).sqrt() + kBiasSafety * J.matmul(bias.narrow(0, number, count)).abs();
    ends.low.narrow(0, next, size).copy_(value.narrow(0, next, size) - reach);
    ends.high.narrow(0, next, size).copy_(value.narrow(0, next, size) + reach);
    ends.seen.narrow(0, next, size).fill_(seen_numbers.narrow(0, number, count).all().item<bool>());
    number += count;
    next += size;
  }
  return ends;
}

MotionEstimate without_intervals(const MotionModel& model, const Tensor& at, const MotionPieces& windows) {
  const Tensor values = model.values_at(at), none = at::full_like(values, kNaN);
  return {at, values, none, none, none, windows};
}

}  // namespace

MotionStage motion_stage(const FitMotionOptions& options, double done) {
  struct Part {
    double until;      // of the iterations
    double length;     // of its windows, relative to the longest
    double step_size;  // relative to the learning rate; it falls to a tenth
  };
  constexpr Part kParts[] = {{0.4, 0.25, 1}, {1, 1, 0.4}};
  const Part* const part =
      std::find_if(std::begin(kParts), std::end(kParts) - 1, [&](const Part& p) { return done < p.until; });
  const double from = part == kParts ? 0 : (part - 1)->until, first = options.learning_rate;
  const double along = (done - from) / (part->until - from), pi = std::acos(-1.0);
  const auto steps = std::max<std::int64_t>(2, std::llround(part->length * static_cast<double>(options.window)));
  return {steps, std::max<std::int64_t>(1, options.window / steps),
          part->step_size * (0.1 * first + 0.9 * first * 0.5 * (1 + std::cos(pi * along)))};
}

MotionPieces windows_of_iteration(const MotionWindows& windows, const Tensor& recordings,
                                  const FitMotionOptions& options, std::int64_t iteration) {
  const double done =
      static_cast<double>(iteration) / static_cast<double>(std::max<std::int64_t>(1, options.iterations));
  const MotionStage stage = motion_stage(options, done);
  return windows.draw(recordings, stage.windows, stage.steps, generator(options.seed, Stream::kWindows, iteration));
}

MotionEstimate estimate_motion(const MotionModel& model, const MotionWindows& windows, const Tensor& start,
                               const FitMotionOptions& options,
                               const std::function<void(std::int64_t, std::int64_t)>& progress) {
  constexpr double kAway = 0.2;
  constexpr std::int64_t kOfEach = 2, kMostParts = 8, kFewestParts = 4, kFewestOfPart = 4;
  check(options);
  const c10::NoGradGuard no_grad;
  const std::int64_t count = windows.recordings();
  const MotionPieces all = fixed_windows(windows, options, kOfEach);
  const MotionModel finer_model = model.finer();
  const auto fit = [&](const MotionModel& of, const Tensor& from, const MotionPieces& some, const Tensor& errors) {
    const auto residuals = [&](const Tensor& numbers, const Tensor& own) {
      MotionWindows::RollOut rolled = rolled_out(of, of.values_at(numbers));
      if (own.size(1) > 0) {
        rolled = [&, exact = rolled](const physics::RigidState& state, std::int64_t steps) {
          return exact(with_errors(state, own, *options.start_deviations), steps);
        };
      }
      return windows.residuals(rolled, some, later_by(options, of));
    };
    const Tensor recording = at::arange(some.count() / kOfEach).repeat_interleave(kOfEach);
    return least_lengths(residuals, from, errors, recording, {.tasks = options.tasks});
  };
  const std::int64_t possible = std::min(kMostParts, count / kFewestOfPart);
  const std::int64_t parts = possible >= kFewestParts ? possible : 0;
  const auto tell = [&](std::int64_t fits) {
    if (progress) progress(fits, parts + 2);
  };
  const std::int64_t own = options.start_deviations ? 12 * all.start.position.size(1) : 0;
  const LeastLengths found = fit(model, start, all, at::zeros({all.count(), own}, at::kDouble));
  tell(1);
  // The misfit has kinks. Where no step of the finer fit makes it smaller, its next step says where the fit would end.
  const LeastLengths fine = fit(finer_model, found.theta, all, found.own);
  const Tensor bias = 2 * (fine.theta.equal(found.theta) ? found.step - fine.step : found.theta - fine.theta);
  tell(2);
  const double factor = half_width_95(count, start.size(0));
  Tensor half = factor * found.std, covariance = factor * factor * found.covariance;
  if (parts > 0) {
    const auto random = generator(options.seed, Stream::kWindows, options.iterations + 2);
    const Tensor away = kAway * at::randn({parts, found.theta.size(0)}, random, at::kDouble);
    std::vector<Tensor> fitted;
    for (std::int64_t part = 0; part < parts; ++part) {
      const Tensor recordings = at::arange(part, count, parts).unsqueeze(1);
      const Tensor rows = (kOfEach * recordings + at::arange(kOfEach)).flatten();
      const Tensor errors = found.own.index_select(0, rows);
      fitted.push_back(fit(model, found.theta + away[part], all.at(rows), errors).theta);
      tell(part + 3);
    }
    const double scatter_factor = student_95(static_cast<double>(parts - 1)) / std::sqrt(static_cast<double>(parts));
    const Tensor scatter = at::stack(fitted);
    half = at::maximum(half, scatter_factor * scatter.std(0));
    // The larger of both in each direction of a matrix's numbers, up to a factor of sqrt(2).
    const Tensor apart = scatter_factor * (scatter - scatter.mean(0));
    covariance = covariance + apart.t().matmul(apart) / static_cast<double>(parts - 1);
  }
  half = half + kBiasSafety * bias.abs();
  const auto sums = generator(options.seed, Stream::kWindows, options.iterations + 3);
  half.masked_fill_(are_blind(model, windows, all, found.theta, later_by(options, model), sums),
                    std::numeric_limits<double>::infinity());
  const Ends ends = ends_of(model, found.theta, half, covariance, bias);
  constexpr double kNoBound = std::numeric_limits<double>::infinity();
  MotionPieces all_fitted = all;
  if (own > 0) all_fitted.start = with_errors(all.start, found.own, *options.start_deviations);
  return {found.theta,
          model.values_at(found.theta),
          at::where(ends.seen, ends.low, -kNoBound),
          at::where(ends.seen, ends.high, kNoBound),
          at::where(ends.seen, ends.bias, kNaN),
          all_fitted};
}

MotionFit fit_motion(const MotionModel& model, const std::vector<Recording>& recordings,
                     const FitMotionOptions& given) {
  const c10::InferenceMode trainable(false);
  check(given);
  FitMotionOptions options = given;
  TORCH_CHECK(model.numbers() >= 1, "parameters must name at least one parameter");
  const auto scene_at = [&](const Tensor& values) {
    const c10::NoGradGuard no_grad;
    return model.scene_of(values);
  };
  MotionScene first = scene_at(model.values_at(at::zeros({model.numbers()}, at::kDouble)));
  first.scene.dt *= static_cast<double>(model.options().substeps);
  const auto bodies = static_cast<std::int64_t>(first.scene.bodies.size());
  const auto has_velocities = [](const Recording& recording) {
    return recording.velocity.defined() && recording.angular_velocity.defined();
  };
  std::vector<Recording> complete;
  for (const Recording& recording : recordings) {
    Recording all = with_velocities(recording, first.scene.dt);
    TORCH_CHECK(all.position.size(1) == bodies, "recordings must be of the ", bodies,
                " bodies of the scene, [samples, ", bodies, ", ...]; got ", recording.position.sizes());
    // Of another time than those of the other samples, so that no window begins with it.
    if (!has_velocities(recording)) all.velocity[0].fill_(kNaN);
    complete.push_back(std::move(all));
  }
  const auto with = std::count_if(recordings.begin(), recordings.end(), has_velocities);
  if (!options.velocity_age) {
    TORCH_CHECK(with == 0 || with == std::ssize(recordings),
                "velocity_age must be given where some recordings have velocities and others have not");
    options.velocity_age = with == 0 ? 0.5 : 0.5 / static_cast<double>(model.options().substeps);
  }
  const MotionWindows windows(complete, windows_options(first, options));
  Training training(model, windows, options);
  training.run();

  const MotionPieces fixed = fixed_windows(windows, options, 2);
  MotionFit found;
  found.start_values = model.values_at(training.theta());
  found.start_misfits = training.misfits(fixed);
  TORCH_CHECK(found.start_misfits.isfinite().any().item<bool>(), "no window is solved at any start");
  constexpr double kUnsolved = std::numeric_limits<double>::infinity();
  const auto best = found.start_misfits.nan_to_num(kUnsolved).argmin().item<std::int64_t>();
  const Tensor numbers = training.theta()[best].clone();
  const auto tell = [&](std::int64_t fits, std::int64_t of) {
    if (options.progress) options.progress({true, static_cast<double>(fits) / static_cast<double>(of), kNaN});
  };
  found.estimate = options.intervals ? estimate_motion(model, windows, numbers, options, tell)
                                     : without_intervals(model, numbers, fixed);
  const c10::NoGradGuard no_grad;
  found.misfit =
      windows.misfits(rolled_out(model, found.estimate.values), found.estimate.windows, later_by(options, model))
          .nanmean()
          .item<double>();
  found.scene = scene_at(found.estimate.values);
  found.unsolved_windows = training.unsolved();
  return found;
}

MotionFit fit_motion(const physics::RigidScene& scene, const std::vector<Recording>& recordings,
                     const std::vector<std::string>& parameters, const FitMotionOptions& options,
                     const physics::RigidOptions& options_of_rollouts) {
  return fit_motion(motion_model(scene, parameters, options_of_rollouts), recordings, options);
}

}  // namespace lcp::identification
