// A walk of rigid bodies allocates nothing per step or trajectory.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "rigid/adjoint.h"
#include "rigid/simulator.h"
#include "rigid/tangent.h"
#include "support/count_allocations.h"

namespace lcp::rigid {
namespace {

// A body of 1 kg with `count` balls above the plane z = 0.
struct Body {
  std::vector<double> mass = {1}, inertia = {1. / 600, 0, 0, 0, 1. / 600, 0, 0, 0, 1. / 600}, centers, radii,
                      normals = {0, 0, 1}, offsets = {0}, gravity = {0, 0, -9.81}, mu, restitution, stiffness,
                      dissipation;
  std::vector<double> drag = {0.1}, position, orientation = {0.8, 0.3, -0.4, 0.2}, velocity = {0.5, -0.3, 0},
                      angular_velocity = {2, -1, 3};
  Scene scene;

  Body(int count, double radius, double height, const Law& law)
      : radii(count, radius),
        mu(count, 0.3),
        restitution(count, 0.2),
        stiffness(count, 1e4),
        dissipation(count, 0.02),
        position{0, 0, height},
        scene{1, count, 1, {}, law, 0.005, {}, 1} {
    for (int k = 0; k < count; ++k) {
      for (const int bit : {1, 2, 4}) centers.push_back(count == 1 ? 0 : (k & bit) != 0 ? 0.05 : -0.05);
      scene.pairs.push_back({0, k, Pair::kWorld, 0, -1});
    }
  }

  Parameters<const double> parameters() const {
    return {mass.data(),    inertia.data(), drag.data(), centers.data(),     radii.data(),     normals.data(),
            offsets.data(), gravity.data(), mu.data(),   restitution.data(), stiffness.data(), dissipation.data()};
  }
  State<const double> state() const {
    return {position.data(), orientation.data(), velocity.data(), angular_velocity.data()};
  }
};

template <class Number>
Path<const double> constant(const Path<Number>& path) {
  const auto of = [](const Series<Number>& series) { return Series<const double>{series.data, series.stride}; };
  Path<const double> all;
  std::transform(path.parts.begin(), path.parts.end(), all.parts.begin(), of);
  all.gamma = of(path.gamma);
  return all;
}

// A walk forward, and its derivatives.
class Walk {
 public:
  explicit Walk(const Body& body)
      : body_(body),
        pairs_(body.scene.contacts()),
        unknowns_(pairs_ * unknowns_of(body.scene.law)),
        gamma_(3 * pairs_ * kSteps),
        kept_(unknowns_ * kSteps),
        states_(unknowns_ * kSteps),
        chosen_(std::make_unique<std::int8_t[]>(pairs_ * kSteps)),
        of_pairs_(3 * pairs_),
        ones_(std::max<std::int64_t>(3 * pairs_, 13), 1.0),
        simulator_(body.scene, 1e-9),
        adjoint_(body.scene, 1e-9, 1e-11, Ties::kInactive),
        tangent_(body.scene, 1e-9, 1e-11, Ties::kInactive) {}

  long allocations_forward() {
    const long before = testing::allocations();
    simulator_.run(kSteps, body_.parameters(), body_.state(), {u_.data(), 0}, path(),
                   {{kept_.data(), unknowns_},
                    {states_.data(), unknowns_},
                    {chosen_.get(), pairs_},
                    {status_.data(), 1},
                    {iterations_.data(), 1}});
    return testing::allocations() - before;
  }

  long allocations_backward() {
    const Series<const double> one = {ones_.data(), 0};
    double* const c = of_pairs_.data();
    const Path<const double> gradient = {{one, one, one, one}, one};
    const Gradients to = {
        {&of_mass_, of_inertia_, &of_drag_, c, nullptr, of_normal_, &of_offset_, of_gravity_, c, c, c, c},
        {of_first_, of_first_ + 3, of_first_ + 7, of_first_ + 10},
        {of_u_.data(), 6}};
    const long before = testing::allocations();
    adjoint_.run(kSteps, body_.parameters(), walked(), {&gradient, 1}, {&to, 1});
    return testing::allocations() - before;
  }

  long allocations_in_forward_mode() {
    const double* const one = ones_.data();
    const std::int64_t none = 0;
    const Path<double> to = {
        {{{of_u_.data(), none}, {of_u_.data() + 3, none}, {of_u_.data() + 7, none}, {of_u_.data() + 10, none}}},
        {of_pairs_.data(), none}};
    const Direction along = {
        {one, nullptr, one, one, one, nullptr, one, nullptr, one, one, one, one}, {one, one, one, one}, {one, 0}};
    const long before = testing::allocations();
    tangent_.run(kSteps, body_.parameters(), walked(), {&along, 1}, {&to, 1});
    return testing::allocations() - before;
  }

  bool solved() const {
    return std::all_of(status_.begin(), status_.end(), [](std::int8_t status) { return status == 0; });
  }
  bool touches_always() const {
    return std::all_of(chosen_.get(), chosen_.get() + pairs_ * kSteps,
                       [](std::int8_t chosen) { return chosen != kNotChosen; });
  }

 private:
  static constexpr int kSteps = 150;

  Path<double> path() {
    return {{{{position_.data(), 3}, {orientation_.data(), 4}, {velocity_.data(), 3}, {turning_.data(), 3}}},
            {gamma_.data(), 3 * pairs_}};
  }

  WalkedPath walked() {
    return {body_.state(),
            {u_.data(), 0},
            constant(path()),
            {kept_.data(), unknowns_},
            {states_.data(), unknowns_},
            {chosen_.get(), pairs_},
            {status_.data(), 1}};
  }

  const Body& body_;
  std::int64_t pairs_, unknowns_;
  std::vector<double> u_ = std::vector<double>(6), position_ = std::vector<double>(3 * kSteps),
                      orientation_ = std::vector<double>(4 * kSteps), velocity_ = position_, turning_ = position_,
                      gamma_, of_u_ = std::vector<double>(6 * kSteps);
  std::vector<double> kept_;
  std::vector<std::int8_t> states_;
  std::unique_ptr<std::int8_t[]> chosen_;
  std::vector<std::int8_t> status_ = std::vector<std::int8_t>(kSteps);
  std::vector<std::int64_t> iterations_ = std::vector<std::int64_t>(kSteps);
  double of_mass_ = 0, of_offset_ = 0, of_drag_ = 0, of_inertia_[9] = {}, of_normal_[3] = {}, of_gravity_[3] = {},
         of_first_[13] = {};
  std::vector<double> of_pairs_, ones_;
  Simulator simulator_;
  Adjoint adjoint_;
  Tangent tangent_;
};

TEST(RigidAllocationTest, NothingIsAllocatedPerStepOrTrajectory) {
  const Law laws[] = {
      {Formulation::kExactCone}, {Formulation::kPolyhedral, 5, 0.3}, {Formulation::kCompliant, 0, 0, 1e-3, 1}};
  for (const Law& law : laws) {
    const Body cube(8, 0, 0.12, law), ball(1, 0.1, 0.1, law);
    Walk tumbling(cube), rolling(ball);
    for (Walk* const walk : {&tumbling, &rolling}) {
      walk->allocations_forward();  // makes the workspaces
      EXPECT_EQ(walk->allocations_forward(), 0);
      EXPECT_TRUE(walk->solved());
    }
    // With contacts that come and go friction::Derivative allocates, and with ties that are active the LCP is singular.
    EXPECT_TRUE(rolling.touches_always());
    Walk& backward = law.formulation == Formulation::kCompliant ? tumbling : rolling;
    backward.allocations_backward();
    EXPECT_EQ(backward.allocations_backward(), 0);
    backward.allocations_in_forward_mode();
    EXPECT_EQ(backward.allocations_in_forward_mode(), 0);
  }
}

}  // namespace
}  // namespace lcp::rigid
