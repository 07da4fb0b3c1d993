// Several impacts in a step: they follow one another in time, and create no energy.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "rigid/simulator.h"

namespace lcp::rigid::impacts_test {

constexpr int kProblems = 10000;

// Bodies without gravity, each two of which may touch with the same restitution and friction.
class World {
 public:
  World(double restitution, double dt, double mu = 0) : restitution_(restitution), mu_(mu) { scene.dt = dt; }

  Scene scene = {0, 0, 0, {}, {Formulation::kExactCone}, 0, {}, 1};
  std::vector<double> gravity = {0, 0, 0}, masses;

  // Balls of this radius, with their centres in the axes of the body. inertia: the same about all axes.
  void add_body(double mass, double inertia, const std::vector<double>& centers, double radius,
                const std::vector<double>& position, const std::vector<double>& velocity,
                const std::vector<double>& quaternion = {1, 0, 0, 0}, const std::vector<double>& omega = {0, 0, 0}) {
    const int body = scene.bodies++, first = scene.balls;
    masses.push_back(mass);
    drag_.push_back(0);
    for (int i = 0; i < 9; ++i) inertias_.push_back(i % 4 == 0 ? inertia : 0);
    const auto append = [](std::vector<double>& to, const std::vector<double>& x) {
      to.insert(to.end(), x.begin(), x.end());
    };
    append(centers_, centers);
    append(position_, position);
    append(velocity_, velocity);
    append(orientation_, quaternion);
    append(omega_, omega);
    scene.balls += static_cast<int>(centers.size() / 3);
    radii_.resize(scene.balls, radius);
    for (int ball = first; ball < scene.balls; ++ball) {
      for (int other = 0; other < first; ++other) add_pair({body, ball, body_of_[other], -1, other});
    }
    body_of_.resize(scene.balls, body);
  }

  // The plane z = 0, which all balls of the bodies so far may touch.
  void add_ground() {
    normals_.insert(normals_.end(), {0, 0, 1});
    offsets_.push_back(0);
    for (int ball = 0; ball < scene.balls; ++ball) add_pair({body_of_[ball], ball, Pair::kWorld, scene.planes, -1});
    ++scene.planes;
  }

  void run(int steps) {
    const int b = scene.bodies, c = scene.contacts();
    steps_ = steps;
    for (auto* x : {&positions_, &velocities_, &omegas_}) x->resize(3 * b * steps);
    orientations_.resize(4 * b * steps);
    gamma_.resize(3 * c * steps);
    std::vector<double> u(6 * b);
    std::vector<std::int8_t> chosen(c * steps);
    std::vector<std::int64_t> iterations(steps);
    status_.resize(steps);
    const std::vector<double> of_pairs(c, 1.0), mu(c, mu_), restitution(c, restitution_);
    Simulator(scene, 1e-12)
        .run(steps,
             {masses.data(), inertias_.data(), drag_.data(), centers_.data(), radii_.data(), normals_.data(),
              offsets_.data(), gravity.data(), mu.data(), restitution.data(), of_pairs.data(), of_pairs.data()},
             {position_.data(), orientation_.data(), velocity_.data(), omega_.data()}, {u.data(), 0},
             {{{{positions_.data(), 3 * b},
                {orientations_.data(), 4 * b},
                {velocities_.data(), 3 * b},
                {omegas_.data(), 3 * b}}},
              {gamma_.data(), 3 * c}},
             {{nullptr, 0}, {nullptr, 0}, {chosen.data(), c}, {status_.data(), 1}, {iterations.data(), 1}});
  }

  bool solved() const {
    return std::all_of(status_.begin(), status_.end(), [](int status) { return status == 0; });
  }
  // After step s, from 0; -1: at the start. Of the velocity, at the end of the step, of bodies that fly.
  double energy(int s) const {
    const double* const v = s < 0 ? velocity_.data() : velocities_.data() + 3 * scene.bodies * s;
    const double* const omega = s < 0 ? omega_.data() : omegas_.data() + 3 * scene.bodies * s;
    const double* const x = s < 0 ? position_.data() : positions_.data() + 3 * scene.bodies * s;
    double sum = 0;
    for (int i = 0; i < 3 * scene.bodies; ++i) {
      const int body = i / 3;
      const double at_end = v[i] + 0.5 * scene.dt * gravity[i % 3];
      sum += 0.5 * (masses[body] * at_end * at_end + inertias_[9 * body] * omega[i] * omega[i]) -
             masses[body] * gravity[i % 3] * x[i];
    }
    return sum;
  }
  double fastest(int s) const {
    double most = 0;
    for (int i = 0; i < 3 * scene.bodies; ++i) most = std::max(most, std::abs(velocities_[3 * scene.bodies * s + i]));
    return most;
  }
  double position(int body, int axis) const { return positions_[3 * (scene.bodies * (steps_ - 1) + body) + axis]; }
  double velocity(int body, int axis) const { return velocities_[3 * (scene.bodies * (steps_ - 1) + body) + axis]; }

 private:
  void add_pair(const Pair& pair) { scene.pairs.push_back(pair); }

  double restitution_, mu_;
  int steps_ = 0;
  std::vector<int> body_of_;  // of each ball
  std::vector<double> drag_, inertias_, centers_, radii_, normals_, offsets_, position_, velocity_, orientation_,
      omega_;
  std::vector<double> positions_, velocities_, orientations_, omegas_, gamma_;
  std::vector<std::int8_t> status_;
};

constexpr double kRadius = 0.05;

// Balls on the axis x.
struct Chain {
  std::vector<double> mass, x, v;

  World world(double restitution, double dt) const {
    World world(restitution, dt);
    for (std::size_t i = 0; i < x.size(); ++i) {
      world.add_body(mass[i], 1e-3, {0, 0, 0}, kRadius, {x[i], 0, 0}, {v[i], 0, 0});
    }
    return world;
  }

  // Moves the balls by pairwise impacts until `end`. False where two impacts come at about the same time, or too many.
  bool move(double restitution, double end) {
    double now = 0, last = -1;
    for (int count = 0; count < 100; ++count) {
      double first = end, second = end;
      std::size_t left = x.size();
      for (std::size_t i = 0; i + 1 < x.size(); ++i) {
        const double gap = std::max(0.0, x[i + 1] - x[i] - 2 * kRadius), speed = v[i] - v[i + 1];
        const double time = speed > 1e-14 ? now + gap / speed : std::numeric_limits<double>::infinity();
        if (time < first) {
          second = first;
          first = time;
          left = i;
        } else {
          second = std::min(second, time);
        }
      }
      for (std::size_t i = 0; i < x.size(); ++i) x[i] += (first - now) * v[i];
      now = first;
      if (left == x.size()) return true;
      if (second - first < 1e-8 || first - last < 1e-8) return false;
      last = first;
      const double m = mass[left], n = mass[left + 1], speed = v[left] - v[left + 1];
      v[left] -= (1 + restitution) * speed * n / (m + n);
      v[left + 1] += (1 + restitution) * speed * m / (m + n);
    }
    return false;
  }
};

class ImpactsTest : public ::testing::Test {
 protected:
  double uniform(double low, double high) { return std::uniform_real_distribution<double>(low, high)(random_); }
  int integer(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  double log_uniform(double low, double high) { return std::exp(uniform(std::log(low), std::log(high))); }
  double any_restitution() { return integer(0, 2) == 0 ? uniform(0, 1) : integer(0, 2) / 2.0; }

 private:
  std::mt19937 random_{7};
};

TEST_F(ImpactsTest, TwoBallsDriveTheTwoAtTheOtherEndOfARow) {
  for (const double gap : {1e-3, 1e-4}) {
    for (const double dt : {1e-4, 1e-3, 1e-2}) {
      Chain chain{{1, 1, 1, 1, 1}, {}, {1, 1, 0, 0, 0}};
      for (int i = 0; i < 5; ++i) chain.x.push_back(i * (2 * kRadius + gap) - (i < 2 ? 0.1 : 0));
      World world = chain.world(1, dt);
      world.run(static_cast<int>(std::lround(0.3 / dt)));
      ASSERT_TRUE(world.solved());
      for (int i = 0; i < 5; ++i) EXPECT_NEAR(world.velocity(i, 0), i < 3 ? 0 : 1, 1e-12) << gap << " " << dt;
    }
  }
}

TEST_F(ImpactsTest, ChainsMoveByPairwiseImpactsOneAfterAnother) {
  int compared = 0, with_several = 0;
  for (int k = 0; compared < kProblems; ++k) {
    Chain chain;
    double at = 0;
    for (int i = integer(2, 5); i > 0; --i) {
      chain.mass.push_back(log_uniform(0.3, 3));
      chain.x.push_back(at);
      chain.v.push_back(uniform(-1, 1));
      at += 2 * kRadius + log_uniform(1e-5, 1e-2);
    }
    const double restitution = uniform(0.2, 1), dt = log_uniform(1e-4, 2e-2);
    World world = chain.world(restitution, dt);
    constexpr int kSteps = 10;
    const Chain before = chain;
    if (!chain.move(restitution, kSteps * dt)) continue;
    ++compared;
    world.run(kSteps);
    ASSERT_TRUE(world.solved()) << k;
    for (std::size_t i = 0; i < chain.x.size(); ++i) {
      ASSERT_NEAR(world.velocity(static_cast<int>(i), 0), chain.v[i], 1e-9) << k;
      ASSERT_NEAR(world.position(static_cast<int>(i), 0), chain.x[i], 1e-9) << k;
    }
    with_several += std::count_if(chain.v.begin(), chain.v.end(), [&](const double& v) {
                      return v != before.v[static_cast<std::size_t>(&v - chain.v.data())];
                    }) > 2;
  }
  EXPECT_GT(with_several, kProblems / 10);
}

TEST_F(ImpactsTest, BallsWithoutFrictionGainNoEnergyAndElasticOnesLoseNone) {
  int hits = 0;
  for (int k = 0; k < kProblems; ++k) {
    const double restitution = any_restitution(), dt = log_uniform(1e-4, 5e-2);
    World world(restitution, dt);
    std::vector<double> places;
    for (int i = integer(2, 6); i > 0; --i) {  // in a box of a few radii; they may touch, but not overlap
      std::vector<double> place;
      const auto overlaps = [&] {
        place = {uniform(-0.15, 0.15), uniform(-0.15, 0.15), uniform(kRadius, 0.3)};
        for (int j = 0; j < world.scene.bodies; ++j) {
          double square = 0;
          for (int axis = 0; axis < 3; ++axis) square += std::pow(place[axis] - places[3 * j + axis], 2);
          if (square < 4 * kRadius * kRadius) return true;
        }
        return false;
      };
      while (overlaps()) {
      }
      places.insert(places.end(), place.begin(), place.end());
      world.add_body(log_uniform(0.3, 3), 1e-3, {0, 0, 0}, kRadius, place,
                     {uniform(-1, 1), uniform(-1, 1), uniform(-1, 1)});
    }
    world.add_ground();
    world.run(8);
    ASSERT_TRUE(world.solved()) << k;
    for (int s = 0; s < 8; ++s) {
      ASSERT_LE(world.energy(s), world.energy(s - 1) * (1 + 1e-11)) << k << " at " << s;
      if (restitution == 1) {
        ASSERT_GE(world.energy(s), world.energy(s - 1) * (1 - 1e-11)) << k << " at " << s;
      }
    }
    hits += world.energy(7) < world.energy(-1) * (1 - 1e-6);
  }
  EXPECT_GT(hits, kProblems / 10);
}

TEST_F(ImpactsTest, BoxesGainNoEnergyWithoutFrictionOrWithoutRestitution) {
  int hits = 0;
  for (int k = 0; k < kProblems; ++k) {
    const bool slides = integer(0, 1) == 0;
    World world(slides ? any_restitution() : 0, log_uniform(1e-4, 1e-2), slides ? 0 : log_uniform(0.05, 2));
    world.scene.stabilization = 0;  // since a body that is pushed out of another one gains energy
    for (int i = 0, boxes = integer(1, 2); i < boxes; ++i) {
      std::vector<double> corners, quaternion, spin, velocity;
      for (int corner = 0; corner < 8; ++corner) {
        for (const int bit : {1, 2, 4}) corners.push_back((corner & bit) != 0 ? 0.05 : -0.05);
      }
      for (int j = 0; j < 4; ++j) quaternion.push_back(uniform(-1, 1));
      for (int j = 0; j < 3; ++j) spin.push_back(uniform(-3, 3));
      for (int j = 0; j < 3; ++j) velocity.push_back(uniform(-1, 1));
      if (integer(0, 1) == 0) quaternion = {1, 1e-3 * uniform(-1, 1), 0, 0};  // nearly on a face
      world.add_body(1, 1. / 600, corners, 0.01, {0.2 * i, 0, uniform(0.06, 0.13)}, velocity, quaternion, spin);
    }
    world.add_ground();
    world.run(10);
    ASSERT_TRUE(world.solved()) << k;
    for (int s = 0; s < 10; ++s) ASSERT_LE(world.energy(s), world.energy(s - 1) * (1 + 1e-9)) << k << " at " << s;
    hits += world.energy(9) < world.energy(-1) * (1 - 1e-6);
  }
  EXPECT_GT(hits, kProblems / 10);
}

// Between the impacts of a step a body may turn other corners onto the ground, slowly. These do not go through it, from
// where the rest of the step would be too short to come back.
TEST_F(ImpactsTest, CubesThatAreThrownComeToRest) {
  int resting = 0;
  for (int k = 0; k < kProblems; ++k) {
    World world(uniform(0.1, 0.5), log_uniform(2e-3, 8e-3), uniform(0.1, 0.4));
    world.gravity = {0, 0, -9.81};
    std::vector<double> corners, quaternion, spin, velocity;
    for (int corner = 0; corner < 8; ++corner) {
      for (const int bit : {1, 2, 4}) corners.push_back((corner & bit) != 0 ? kRadius : -kRadius);
    }
    for (int j = 0; j < 4; ++j) quaternion.push_back(uniform(-1, 1));
    for (int j = 0; j < 3; ++j) spin.push_back(uniform(-4, 4));
    for (int j = 0; j < 3; ++j) velocity.push_back(uniform(-1, 1));
    world.add_body(1, 2e-3, corners, 0, {0, 0, uniform(0.1, 0.15)}, velocity, quaternion, spin);
    world.add_ground();
    constexpr int kSteps = 150;
    world.run(kSteps);
    ASSERT_TRUE(world.solved()) << k;
    for (int s = 0; s < kSteps; ++s) ASSERT_LE(world.energy(s), 1.1 * world.energy(-1)) << k << " at " << s;
    resting += world.fastest(kSteps - 1) < 1e-3;
  }
  EXPECT_GT(resting, kProblems / 10);
}

TEST_F(ImpactsTest, ElasticBallsThatFallOnEachOtherGainNoMoreEnergyThanAContactGivesInAStep) {
  int exact = 0;
  for (int k = 0; k < kProblems / 10; ++k) {
    const double dt = log_uniform(1e-3, 2e-2);
    World world(1, dt);
    world.gravity = {0, 0, -9.81};
    double height = kRadius, weight = 0;
    for (int i = integer(1, 4); i > 0; --i) {
      height += log_uniform(1e-4, 0.2);
      world.add_body(log_uniform(0.3, 3), 1e-3, {0, 0, 0}, kRadius, {0, 0, height}, {0, 0, uniform(-2, 2)});
      height += 2 * kRadius;
      weight += 9.81 * world.masses.back();
    }
    world.add_ground();
    constexpr int kSteps = 60;
    world.run(kSteps);
    ASSERT_TRUE(world.solved()) << k;
    for (int s = 0; s < kSteps; ++s) {
      // An impact that lifts a ball from the ground leaves it what the ground gave it for the whole step.
      const double speed = 9.81 * dt + world.fastest(s);
      ASSERT_LE(world.energy(s), world.energy(s - 1) + weight * dt * speed) << k << " at " << s;
    }
    exact += std::abs(world.energy(kSteps - 1) - world.energy(-1)) <= 1e-9 * weight;
  }
  EXPECT_GT(exact, kProblems / 40);
}

}  // namespace lcp::rigid::impacts_test
