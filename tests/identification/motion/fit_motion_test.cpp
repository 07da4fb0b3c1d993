#include "lcp/identification/fit_motion.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "lcp/physics/rotation.h"
#include "support/errors.h"
#include "support/finite_differences.h"

namespace lcp::identification::fit_motion_test {

using physics::Plane;
using physics::RigidBody;
using physics::RigidFormulation;
using physics::RigidOptions;
using physics::RigidScene;
using physics::RigidState;
using torch::Tensor;

const auto kDouble = torch::kDouble;
constexpr double kDt = 0.01, kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr std::int64_t kSteps = 32;

RigidScene scene_with(double mu, double restitution, const std::vector<double>& moments, std::int64_t bodies = 1) {
  RigidScene scene{{},
                   {Plane::inclined()},
                   kDt,
                   torch::tensor({0., 0., -9.81}, kDouble),
                   torch::tensor({mu}, kDouble),
                   torch::tensor({restitution}, kDouble)};
  for (std::int64_t k = 0; k < bodies; ++k) {
    RigidBody box = RigidBody::box(1, {0.1, 0.14, 0.06});
    box.inertia = at::diag(torch::tensor(moments, kDouble));
    scene.bodies.push_back(box);
  }
  scene.stiffness = torch::tensor({4000.}, kDouble);
  scene.dissipation = torch::tensor({0.02}, kDouble);
  return scene;
}

const std::vector<double> kMoments = {2e-3, 1.2e-3, 2.6e-3};

RigidScene truth(std::int64_t bodies = 1) { return scene_with(0.25, 0.3, kMoments, bodies); }
RigidScene start(std::int64_t bodies = 1) { return scene_with(0.5, 0.15, {1.5e-3, 1.5e-3, 1.5e-3}, bodies); }

RigidState thrown(std::int64_t count, std::int64_t bodies = 1) {
  torch::manual_seed(1);
  const auto normal = [&](std::int64_t size) { return torch::randn({count, bodies, size}, kDouble); };
  RigidState first = RigidState::at_rest(0.02 * normal(3) + torch::tensor({0., 0., 0.13}, kDouble));
  first.position.select(-1, 0).add_(0.4 * torch::arange(bodies));
  const Tensor q = normal(4);
  first.orientation = q / q.norm(2, {-1}, true);
  first.velocity = normal(3) * torch::tensor({0.8, 0.8, 0.2}, kDouble);
  first.angular_velocity = 3 * normal(3);
  return first;
}

// Throws of a scene, recorded with a little noise of the positions and rotations.
std::vector<Recording> recordings_of(const RigidScene& scene, std::int64_t count, const RigidOptions& options,
                                     double noise = 1e-4) {
  const auto bodies = static_cast<std::int64_t>(scene.bodies.size());
  const RigidState first = thrown(count, bodies);
  RigidScene stepped = scene;
  stepped.dt = kDt / static_cast<double>(options.substeps);
  const auto found = physics::simulate(first, torch::zeros({kSteps, 1, bodies, 6}, kDouble), stepped, options);
  EXPECT_TRUE((found.status == 0).all().item<bool>());
  const auto all = [](const Tensor& x, const Tensor& next) { return at::cat({x.unsqueeze(0), next}); };
  std::vector<Recording> recordings;
  for (std::int64_t k = 0; k < count; ++k) {
    const auto of = [&](const Tensor& x, const Tensor& next) { return all(x, next).select(1, k).clone(); };
    Recording one{of(first.position, found.next.position), of(first.orientation, found.next.orientation),
                  of(first.velocity, found.next.velocity), of(first.angular_velocity, found.next.angular_velocity)};
    one.position += noise * torch::randn_like(one.position);
    one.orientation = physics::turned(one.orientation, 10 * noise * torch::randn_like(one.position));
    recordings.push_back(one);
  }
  return recordings;
}

const std::vector<std::string> kNames = {"mu", "restitution", "bodies[0].moments"};
const RigidOptions kTwo{.substeps = 2};

FitMotionOptions quick() {
  FitMotionOptions options;
  options.iterations = 60;
  options.window = kSteps;
  options.batch = 16;
  return options;
}

TEST(FitMotionTest, FindsABoxFromItsThrows) {
  const MotionFit fit = fit_motion(start(), recordings_of(truth(), 40, kTwo), kNames, quick());
  const double expected[] = {0.25, 0.3, kMoments[0], kMoments[1], kMoments[2]};
  const double errors[] = {0.01, 0.04, 2e-4, 2e-4, 3e-4};
  for (std::int64_t k = 0; k < 5; ++k) {
    const auto number = [&](const Tensor& x) { return x[k].item<double>(); };
    EXPECT_NEAR(number(fit.estimate.values), expected[k], errors[k]) << k;
    EXPECT_LT(number(fit.estimate.low), number(fit.estimate.values)) << k;
    EXPECT_GT(number(fit.estimate.high), number(fit.estimate.values)) << k;
    EXPECT_LT(number(fit.estimate.low), expected[k] + errors[k] / 10) << k;
    EXPECT_GT(number(fit.estimate.high), expected[k] - errors[k] / 10) << k;
    EXPECT_TRUE(std::isfinite(number(fit.estimate.bias))) << k;
  }
  EXPECT_LT(fit.misfit, 0.3);
  EXPECT_EQ(fit.unsolved_windows, 0);
  EXPECT_EQ(fit.scene.scene.dt, kDt / 2);
  EXPECT_EQ(fit.scene.scene.mu.item<double>(), fit.estimate.values[0].item<double>());
  EXPECT_FALSE(fit.scene.points.defined());
}

TEST(FitMotionTest, TellsWhatRecordingsDoNotSee) {
  FitMotionOptions options = quick();
  options.iterations = 20;
  const std::vector<std::string> names = {"mu", "bodies[0].mass", "bodies[0].moments"};
  const MotionFit fit = fit_motion(truth(), recordings_of(truth(), 12, kTwo), names, options);
  EXPECT_TRUE(std::isfinite(fit.estimate.high[0].item<double>()));
  for (std::int64_t k = 1; k < 5; ++k) {  // only inertia over mass is seen
    EXPECT_TRUE(std::isinf(fit.estimate.low[k].item<double>())) << k;
    EXPECT_TRUE(std::isinf(fit.estimate.high[k].item<double>())) << k;
    EXPECT_TRUE(std::isnan(fit.estimate.bias[k].item<double>())) << k;
  }
}

TEST(FitMotionTest, AMatrixOfInertiaHasIntervals) {
  FitMotionOptions options = quick();
  RigidScene turned = truth();
  const Tensor R = at::linalg_matrix_exp(torch::tensor({{0., -0.3, 0.2}, {0.3, 0., -0.1}, {-0.2, 0.1, 0.}}, kDouble));
  turned.bodies[0].inertia = R.matmul(turned.bodies[0].inertia).matmul(R.t());
  const MotionFit fit = fit_motion(truth(), recordings_of(turned, 16, kTwo), {"bodies[0].inertia"}, options);
  const Tensor inertia = fit.scene.scene.bodies[0].inertia, expected = turned.bodies[0].inertia;
  EXPECT_LT((inertia - expected).abs().max().item<double>(), 2e-4);
  EXPECT_TRUE(fit.estimate.values.equal(inertia.flatten()));
  EXPECT_TRUE((fit.estimate.low < fit.estimate.values).all().item<bool>());
  const Tensor reach = fit.estimate.high - fit.estimate.values;
  EXPECT_LT(reach.max().item<double>(), 1e-3);
  EXPECT_TRUE(((fit.estimate.values - expected.flatten()).abs() < 2 * reach).all().item<bool>());
}

TEST(FitMotionTest, RecordingsMayBeIncomplete) {
  std::vector<Recording> recordings = recordings_of(truth(), 16, kTwo);
  for (std::size_t k = 0; k < recordings.size(); ++k) {
    Recording& one = recordings[k];
    const auto length = static_cast<std::int64_t>(kSteps + 1 - k);
    for (Tensor* x : {&one.position, &one.orientation}) {
      *x = x->slice(0, 0, length).clone();
      x->slice(0, 15, 18).fill_(kNaN);  // nothing was measured
    }
    one.position.slice(0, 20, 24).select(2, 1).fill_(kNaN);  // one coordinate was not
    one.velocity = one.angular_velocity = Tensor();
  }
  const MotionFit fit = fit_motion(start(), recordings, kNames, quick());
  EXPECT_NEAR(fit.estimate.values[0].item<double>(), 0.25, 0.03);
  EXPECT_NEAR(fit.estimate.values[1].item<double>(), 0.3, 0.1);
  EXPECT_TRUE(fit.estimate.high.isfinite().all().item<bool>());
}

TEST(FitMotionTest, SeveralBodiesAndFormulations) {
  FitMotionOptions options = quick();
  options.iterations = 40;
  for (const RigidFormulation formulation :
       {RigidFormulation::kExactCone, RigidFormulation::kPolyhedral, RigidFormulation::kCompliant}) {
    RigidOptions rollouts = kTwo;
    rollouts.formulation = formulation;
    rollouts.directions.count = 8;
    const std::vector<Recording> recordings = recordings_of(truth(2), 8, rollouts);
    const MotionFit fit = fit_motion(start(2), recordings, {"mu", "bodies[1].moments"}, options, rollouts);
    EXPECT_LE(fit.misfit, fit.start_misfits[0].item<double>()) << static_cast<int>(formulation);
    EXPECT_NEAR(fit.estimate.values[0].item<double>(), 0.25, 0.06) << static_cast<int>(formulation);
  }
}

TEST(FitMotionTest, TheBestOfSeveralStartsGoesOn) {
  FitMotionOptions options = quick();
  options.starts = 4;
  options.iterations = 30;
  const MotionFit fit = fit_motion(start(), recordings_of(truth(), 16, kTwo), kNames, options);
  EXPECT_EQ(fit.start_values.sizes(), at::IntArrayRef({4, 5}));
  EXPECT_EQ(fit.start_misfits.sizes(), at::IntArrayRef({4}));
  EXPECT_LE(fit.misfit, fit.start_misfits.min().item<double>() + 1e-12);
  // The first start is that of one alone, up to round-off.
  options.starts = 1;
  options.intervals = false;
  const MotionFit one = fit_motion(start(), recordings_of(truth(), 16, kTwo), kNames, options);
  EXPECT_TRUE(at::allclose(one.start_values[0], fit.start_values[0], 1e-4));
  EXPECT_TRUE(one.estimate.low.isnan().all().item<bool>());
  EXPECT_TRUE(one.estimate.values.equal(one.start_values[0]));
}

TEST(FitMotionTest, DoesNotDependOnThreads) {
  FitMotionOptions options = quick();
  options.iterations = 4;
  options.starts = 2;
  const std::vector<Recording> recordings = recordings_of(truth(), 12, kTwo);
  const int threads = at::get_num_threads();
  std::vector<MotionFit> fits;
  for (const int count : {1, 2, 3}) {
    at::set_num_threads(count);
    fits.push_back(fit_motion(start(), recordings, kNames, options));
  }
  at::set_num_threads(threads);
  for (const MotionFit& fit : fits) {
    EXPECT_TRUE(fit.estimate.values.equal(fits[0].estimate.values));
    EXPECT_TRUE(fit.estimate.high.equal(fits[0].estimate.high));
    EXPECT_EQ(fit.misfit, fits[0].misfit);
  }
}

TEST(FitMotionTest, TheMisfitHasTheGradientOfDifferences) {
  const std::vector<Recording> recordings = recordings_of(truth(), 2, kTwo);
  const MotionModel model = motion_model(start(), kNames, kTwo);
  const MotionWindows windows(recordings, {.jump = 0.3, .position_unit = 0.01, .rotation_unit = 0.27});
  const MotionPieces pieces = RecordingSet(recordings).pieces(torch::tensor({0, 1}), torch::tensor({0, 0}), 12);
  const testing::Function misfits = [&](const testing::Inputs& x) {
    const auto roll_out = [&](const RigidState& state, std::int64_t steps) {
      return model.roll_out(model.values_at(x[0]).unsqueeze(-2), state, steps);
    };
    return windows.misfits(roll_out, pieces);
  };
  const Tensor numbers = 0.2 * torch::arange(15, kDouble).view({3, 5}).sin();
  EXPECT_LT(testing::gradient_error(misfits, {numbers}), 1e-5);
  EXPECT_LT(testing::second_gradient_error(misfits, {numbers[0]}), 1e-3);
}

TEST(FitMotionTest, ProgressIsToldAndMayEndTheFit) {
  FitMotionOptions options = quick();
  options.iterations = 5;
  std::vector<MotionProgress> told;
  options.progress = [&](const MotionProgress& now) { told.push_back(now); };
  const std::vector<Recording> recordings = recordings_of(truth(), 8, kTwo);
  fit_motion(start(), recordings, {"mu"}, options);
  ASSERT_EQ(told.size(), 7u);
  EXPECT_FALSE(told[4].refines);
  EXPECT_EQ(told[4].done, 1);
  EXPECT_GT(told[0].misfit, 0);
  EXPECT_TRUE(told[6].refines && std::isnan(told[6].misfit));
  EXPECT_EQ(told[6].done, 1);
  options.progress = [](const MotionProgress&) { throw std::runtime_error("enough"); };
  EXPECT_THROW(fit_motion(start(), recordings, {"mu"}, options), std::runtime_error);
}

TEST(FitMotionTest, StagesHaveLongerWindowsAndShorterSteps) {
  FitMotionOptions options;
  const auto at = [&](double done) { return motion_stage(options, done); };
  EXPECT_EQ(at(0).steps, 20);
  EXPECT_EQ(at(0).windows, 4);
  EXPECT_EQ(at(0.4).steps, 80);
  EXPECT_EQ(at(1).windows, 1);
  EXPECT_NEAR(at(0).step_size, 0.1, 1e-15);
  EXPECT_NEAR(at(0.4 - 1e-9).step_size, 0.01, 1e-6);
  EXPECT_NEAR(at(0.4).step_size, 0.04, 1e-15);
  EXPECT_NEAR(at(1).step_size, 0.004, 1e-15);
}

// Velocities that are differences of positions are half a sample old: where the fit is told, gravity has no bias.
TEST(FitMotionTest, KnowsTheAgeOfVelocities) {
  RigidScene flight = truth();
  flight.planes = {Plane::inclined(0, -10)};
  std::vector<Recording> recordings = recordings_of(flight, 12, {.substeps = 4}, 0);
  for (Recording& one : recordings) one.velocity = one.angular_velocity = Tensor();
  FitMotionOptions options = quick();
  options.iterations = 40;
  const auto gravity = [&](const std::optional<double>& age) {
    options.velocity_age = age;
    return fit_motion(flight, recordings, {"gravity"}, options).estimate.values.item<double>();
  };
  EXPECT_NEAR(gravity(std::nullopt), 9.81, 0.02);
  EXPECT_NEAR(gravity(0.5), 9.81, 0.02);
  EXPECT_GT(std::abs(gravity(0.25) - 9.81), 0.1);
}

// Starts with errors that the fit knows of: it finds them, and what else they would spoil.
TEST(FitMotionTest, FindsTheStartsOfWindows) {
  const std::vector<Recording> exact = recordings_of(truth(), 10, kTwo, 0);
  std::vector<Recording> recordings;
  const StateDeviations unit{1e-3, 0.01, 0.03, 0.3};
  for (const Recording& one : exact) {
    const auto random = [&](double size) { return size * torch::randn_like(one.velocity); };
    recordings.push_back({one.position, one.orientation, one.velocity + random(unit.velocity),
                          one.angular_velocity + random(unit.angular_velocity)});
  }
  FitMotionOptions options = quick();
  options.iterations = 20;
  options.window = 20;
  options.jump = 1;
  const MotionFit without = fit_motion(truth(), recordings, {"mu"}, options);
  options.start_deviations = unit;
  const MotionFit with = fit_motion(truth(), recordings, {"mu"}, options);
  EXPECT_LT(with.misfit, 0.5 * without.misfit);
  const auto error = [&](const MotionFit& fit) {
    const MotionPieces& windows = fit.estimate.windows;
    const Tensor expected = RecordingSet(exact).pieces(windows.recording, windows.first, 1).start.velocity;
    return (windows.start.velocity - expected).norm().item<double>();
  };
  EXPECT_LT(error(with), 0.6 * error(without));
  EXPECT_NEAR(with.estimate.values.item<double>(), 0.25, 0.02);
}

TEST(FitMotionTest, MistakesAreNamed) {
  const std::vector<Recording> recordings = recordings_of(truth(), 2, kTwo);
  const auto error = [&](const FitMotionOptions& options) {
    return testing::error_of([&] { fit_motion(start(), recordings, {"mu"}, options); });
  };
  const auto names = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  names(error({.iterations = -1}), "iterations must be >= 0; got -1");
  names(error({.learning_rate = 0}), "learning_rate must be > 0; got 0");
  names(error({.window = 1}), "window must be >= 2; got 1");
  names(error({.batch = 0}), "batch must be >= 1; got 0");
  names(error({.starts = 0}), "starts must be >= 1; got 0");
  names(error({.seed = -1}), "seed must be in [0, 2^32); got -1");
  names(error({.position_unit = 0.}), "position_unit must be > 0; got 0");
  names(error({.rotation_unit = 0}), "rotation_unit must be > 0; got 0");
  names(error({.jump = 0.}), "jump must be > 0; got 0");
  names(error({.start_deviations = StateDeviations{1, 1, 0, 1}}), "start_deviations must be > 0");
  names(error({.velocity_age = kNaN}), "velocity_age must be finite; got nan");
  std::vector<Recording> mixed = recordings;
  mixed[1].velocity = Tensor();
  names(testing::error_of([&] { fit_motion(start(), mixed, {"mu"}); }), "velocity_age must be given");
  names(testing::error_of([&] { fit_motion(start(2), recordings, {"mu"}); }), "recordings must be of the 2 bodies");
  names(testing::error_of([&] { fit_motion(start(), recordings, {}); }), "at least one parameter");
  names(testing::error_of([&] { fit_motion(start(), {}, {"mu"}); }), "at least one recording");
}

}  // namespace lcp::identification::fit_motion_test
