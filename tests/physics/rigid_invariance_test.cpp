// What an observer chooses changes no status of a scene, and its motion as it should: his own speed, his axes, their
// handedness, the order of bodies, planes and balls, and the units.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#include "lcp/physics/rigid_scene.h"
#include "lcp/physics/rotation.h"
#include "support/effort.h"
#include "support/rigid_scenes.h"
#include "support/tensors.h"

namespace lcp::physics::invariance {
namespace {

using testing::number;
using testing::numbers;
using torch::Tensor;

// The scenes of a batch differ in all numbers but dt.
constexpr std::int64_t kBatch = 25;

// The length of the bodies, m, for the comparison of angular velocities with velocities.
constexpr double kLength = 0.1;

// Scenes, [kBatch], with a rollout.
struct Case {
  RigidScene scene;
  RigidState state;
  std::int64_t rows;
  RigidOptions options;

  std::int64_t bodies() const { return static_cast<std::int64_t>(scene.bodies.size()); }
  RigidSolution motion() const {
    return simulate(state, torch::zeros({rows, kBatch, bodies(), 6}, torch::kDouble), scene, options);
  }
};

// What another observer sees, and his states, [rows, ...], in the first one's terms.
struct Description {
  Case other;
  std::function<RigidState(const RigidState&)> state = [](const RigidState& x) { return x; };
  double speed = 0;  // his own, m/s
};

// a b for quaternions, [..., 4].
Tensor product(const Tensor& a, const Tensor& b) {
  const Tensor w = a.select(-1, 0).unsqueeze(-1), x = b.select(-1, 0).unsqueeze(-1);
  const Tensor u = a.narrow(-1, 1, 3), v = b.narrow(-1, 1, 3);
  return torch::cat({w * x - (u * v).sum(-1, true), w * v + x * u + torch::linalg_cross(u.expand_as(v), v)}, -1);
}

Tensor times(const Tensor& matrix, const Tensor& x) { return torch::matmul(matrix, x.unsqueeze(-1)).squeeze(-1); }

// The parameters are the formulation and the speed of the bodies against each other, m/s.
class RigidInvarianceTest : public ::testing::TestWithParam<std::tuple<RigidFormulation, double>> {
 protected:
  enum class Kind { kBallsOnPlanes, kBoxOnGround, kOneImpact, kTwoBalls, kChain, kPlatform };

  void SetUp() override {
    torch::manual_seed(5);
    numbers_.seed(7);
  }

  RigidFormulation formulation() const { return std::get<0>(GetParam()); }
  double speed() const { return std::get<1>(GetParam()); }
  double uniform(double from = 0, double to = 1) { return std::uniform_real_distribution<double>(from, to)(numbers_); }
  int choice(int count) { return std::uniform_int_distribution<int>(0, count - 1)(numbers_); }

  static Tensor random(std::vector<std::int64_t> shape, double from = 0, double to = 1) {
    shape.insert(shape.begin(), kBatch);
    return from + (to - from) * torch::rand(shape, torch::kDouble);
  }
  static Tensor normal(std::vector<std::int64_t> shape) {
    shape.insert(shape.begin(), kBatch);
    return torch::randn(shape, torch::kDouble);
  }
  static RigidBody ball() {
    const Tensor radius = random({}, 0.03, 0.06);
    RigidBody body = RigidBody::ball(random({}, 0.2, 2), radius);
    body.centers = body.centers.expand({kBatch, 1, 3}).clone();
    body.radii = radius.view({kBatch, 1});
    return body;
  }
  static RigidBody box() { return RigidBody::box(random({}, 0.2, 2), random({3}, 0.06, 0.12)); }

  // How far apart the bodies of a scene begin: some of them touch, some overlap.
  Tensor gap(double dt) {
    const Tensor share = random({}), apart = random({}, -0.1, 1.2);
    return speed() * dt * torch::where(share < 0.3, 0, apart);
  }

  // Puts body b where its lowest point is `gap` above the height `floor`.
  static void lower(const RigidBody& body, const Tensor& rotation, const Tensor& gap, double floor, Tensor position) {
    const Tensor points = torch::matmul(body.centers, rotation.mT()).select(-1, 2) - body.radii;
    position.select(-1, 2).copy_(floor + gap - std::get<0>(points.min(-1)));
  }

  Case make(Kind kind) {
    const double dt = uniform(0.002, 0.02), s = speed();
    Case made{{{}, {}, dt, {}, {}, {}}, {}, 1 + choice(5), {}};
    RigidScene& scene = made.scene;
    const auto balls = [&](int count) {
      for (int k = 0; k < count; ++k) scene.bodies.push_back(ball());
    };
    const bool on_ground = kind == Kind::kBallsOnPlanes || kind == Kind::kBoxOnGround || kind == Kind::kOneImpact;
    if (on_ground) scene.planes.push_back({numbers({0, 0, 1}), number(0)});
    if (kind == Kind::kBallsOnPlanes) {
      scene.planes.push_back(Plane::inclined(uniform(0.2, 0.6)));
      balls(1 + choice(3));
    } else if (kind == Kind::kBoxOnGround) {
      scene.bodies.push_back(box());
    } else if (kind == Kind::kOneImpact) {
      balls(1);
    } else if (kind == Kind::kTwoBalls) {
      balls(2);
    } else if (kind == Kind::kChain) {
      balls(2 + choice(3));
    } else {
      scene.bodies = {RigidBody::box(random({}, 1, 10), numbers({0.6, 0.6, 0.1})), box()};
      balls(1 + choice(2));
      scene.planes = {{numbers({0, 0, 1}), number(0.05), 0, {}}, {numbers({-1, 0, 0}), number(-0.25), 0, {}}};
    }
    const std::int64_t count = made.bodies();
    RigidState& state = made.state;
    state.position = torch::zeros({kBatch, count, 3}, torch::kDouble);
    state.orientation = torch::zeros({kBatch, count, 4}, torch::kDouble);
    state.orientation.select(-1, 0).fill_(1);
    for (std::int64_t b = 0; b < count; ++b) {
      const RigidBody& body = scene.bodies[b];
      const Tensor position = state.position.select(1, b), radius = body.radii.select(-1, 0);
      if (kind == Kind::kPlatform && b == 0) continue;
      // A rigid box that lies flat may slide and spin in more than one way.
      const bool flat = body.radii.size(-1) == 8 && choice(3) == 0 && formulation() == RigidFormulation::kCompliant;
      const Tensor turn = flat ? torch::zeros({kBatch, 3}, torch::kDouble) : 0.4 * normal({3});
      state.orientation.select(1, b).copy_(rotation_by(turn));
      const Tensor rotation = rotation_matrix(state.orientation.select(1, b));
      if (kind == Kind::kChain || kind == Kind::kTwoBalls) {
        if (b == 0) continue;
        const Tensor ahead = normal({3}) * numbers({0.2, 1, 1}) + numbers({1.5, 0, 0});
        const Tensor distance = radius + scene.bodies[b - 1].radii.select(-1, 0) + gap(dt);
        position.copy_(state.position.select(1, b - 1) + distance.unsqueeze(-1) * ahead / ahead.norm(2, -1, true));
      } else if (kind == Kind::kPlatform) {
        lower(body, rotation, gap(dt), 0.05, position);
        if (b == 1) {  // the box touches the wall, too
          const Tensor points = torch::matmul(body.centers, rotation.mT()).select(-1, 0) + body.radii;
          position.select(-1, 0).copy_(0.25 - gap(dt) - std::get<0>(points.max(-1)));
        } else {  // the balls touch each other
          position.select(-1, 0).fill_(-0.1);
          if (b == 3) {
            const Tensor distance = radius + scene.bodies[2].radii.select(-1, 0) + gap(dt);
            const Tensor height = position.select(-1, 2) - state.position.select(1, 2).select(-1, 2);
            position.select(-1, 0).sub_((distance.square() - height.square()).sqrt());
          }
        }
      } else {
        lower(body, rotation, gap(dt), 0, position);
        // The balls lie in the edge of ground and slope, or in a row along it.
        if (kind == Kind::kBallsOnPlanes) {
          const Plane& slope = scene.planes[1];
          const double sine = slope.normal[0].item<double>(), cosine = slope.normal[2].item<double>();
          position.select(-1, 0).copy_((radius + gap(dt) - cosine * position.select(-1, 2)) / sine);
          if (b > 0) {
            const Tensor previous = state.position.select(1, b - 1);
            const Tensor distance = radius + scene.bodies[b - 1].radii.select(-1, 0) + gap(dt);
            const Tensor aside = (position - previous).narrow(-1, 0, 3).square();
            const Tensor rest = distance.square() - aside.select(-1, 0) - aside.select(-1, 2);
            position.select(-1, 1).copy_(previous.select(-1, 1) + rest.clamp_min(1e-4).sqrt());
          }
        }
      }
    }
    state.velocity = s * (normal({count, 3}) + numbers({0, 0, on_ground ? -0.5 : 0}));
    if (kind == Kind::kPlatform) state.velocity.narrow(1, 1, count - 1).select(-1, 2).sub_(0.5 * s);
    state.angular_velocity = s * 5 * normal({count, 3});
    scene.gravity = s * (numbers({0, 0, -10}) + normal({3}));
    const auto contacts = static_cast<std::int64_t>(contact_pairs(scene).size());
    scene.mu = random({contacts}, 0, 0.7);
    const bool bounces = kind == Kind::kOneImpact || kind == Kind::kTwoBalls;
    scene.restitution = bounces ? random({contacts}) : torch::zeros({1}, torch::kDouble);
    scene.stiffness = 1 / (dt * dt) * torch::exp(random({contacts}, -4, 2));
    scene.dissipation = random({contacts}, 0, 2 * dt);
    made.options.formulation = formulation();
    made.options.directions.count = 3 + choice(6);
    // Where there may be several contacts, none of them is an impact.
    if (!bounces) made.options.bounce_threshold = 1e3 * s;
    if (bounces && choice(2) == 0) made.options.bounce_threshold = s * uniform(0.05, 0.5);
    return made;
  }

  // Where a change of the start changes the motion by at most 1000 times as much, [kBatch]. `unit`: [kBatch], m/s.
  static Tensor is_certain(const Case& mine, const RigidSolution& motion, const Tensor& unit) {
    constexpr double kChange = 1e-6;
    Tensor certain = (motion.status == 0).all(0);
    for (int k = 0; k < 2; ++k) {
      Case other = mine;
      const auto change = [&](const Tensor& x, double size) {
        return x + size * unit.view({-1, 1, 1}) * normal({x.size(1), 3});
      };
      other.state.position = change(mine.state.position, kChange * mine.scene.dt);
      other.state.velocity = change(mine.state.velocity, kChange);
      other.state.angular_velocity = change(mine.state.angular_velocity, kChange / kLength);
      const RigidSolution changed = other.motion();
      certain = certain & (changed.status == 0).all(0) & (difference(mine, changed.next, motion.next) / unit <= 1e-3);
    }
    return certain;
  }

  // The largest difference of two motions, [kBatch], m/s.
  static Tensor difference(const Case& mine, const RigidState& a, const RigidState& b) {
    const double time = static_cast<double>(mine.rows) * mine.scene.dt;
    return torch::stack({largest_of(a.velocity - b.velocity),
                         kLength * largest_of(a.angular_velocity - b.angular_velocity),
                         largest_of(a.position - b.position) / time,
                         kLength / time * largest_of(rotation_matrix(a.orientation) - rotation_matrix(b.orientation))})
        .amax(0);
  }
  // x: [rows, kBatch, ...].
  static Tensor largest_of(const Tensor& x) { return x.abs().flatten(2).amax(-1).amax(0); }

  // The kinds among `all` that are to be compared. A rigid contact that closes at less than 1e-10 of the velocity at
  // which the farthest pair would close, some 100 m/s, may stay out of a step: which ones do is a matter of round-off.
  std::vector<Kind> chosen(std::vector<Kind> all) const {
    if (speed() == 1 || formulation() == RigidFormulation::kCompliant) return all;
    std::erase_if(all, [](Kind kind) { return kind != Kind::kOneImpact && kind != Kind::kTwoBalls; });
    return all;
  }

  // The motions are the same to 1000 times the errors of the solvers, of the choice of contacts, and of the rounding of
  // gaps and velocities: is_certain bounds by that factor how much an error grows.
  void expect_same(const std::vector<Kind>& all_kinds, const std::function<Description(Case)>& describe) {
    const std::vector<Kind> kinds = chosen(all_kinds);
    std::int64_t compared = 0, differ = 0, all = 0, sharp = 0;
    const int count = testing::effort(40);
    for (int k = 0; k < count; ++k) {
      const Kind kind = kinds[k % kinds.size()];
      Case mine = make(kind);
      const Description other = describe(mine);
      mine = prepared_;
      const RigidSolution motion = mine.motion(), his = other.other.motion();
      ASSERT_TRUE(torch::equal(motion.status, his.status)) << k;
      EXPECT_TRUE(testing::everywhere(motion.status == 0)) << k;
      all += kBatch;
      const RigidState next = other.state(his.next);
      const Tensor unit =
          largest_of(motion.next.velocity) + kLength * largest_of(motion.next.angular_velocity) + speed();
      const Tensor certain = is_certain(mine, motion, unit);
      const double time = static_cast<double>(mine.rows) * mine.scene.dt;
      const Tensor rounding = 4e-16 * ((1 + other.speed * time) / mine.scene.dt + other.speed) / unit;
      const double slack = formulation() == RigidFormulation::kCompliant ? 0 : 1e-10;
      const Tensor choice = slack * contacts(mine.state, mine.scene).gap.amax(-1) / (mine.scene.dt * unit);
      const Tensor allowed = 1e-5 + 1e3 * (rounding + choice);
      const Tensor worst = difference(mine, next, motion.next) / unit;
      const Tensor wrong = certain & ~(worst <= allowed);
      compared += testing::count(certain);
      sharp += testing::count(certain & (allowed <= 1e-2));
      differ += testing::count(wrong);
    }
    // Close to a change of the contacts, the small changes of is_certain do not find the largest growth.
    EXPECT_LE(differ, 1 + compared / 500);
    EXPECT_GT(sharp, all / 4);
  }

  Case prepared_;
  std::mt19937_64 numbers_;
  std::vector<Kind> all_kinds_ = {Kind::kBallsOnPlanes, Kind::kBoxOnGround, Kind::kOneImpact,
                                  Kind::kTwoBalls,      Kind::kChain,       Kind::kPlatform};
  std::vector<Kind> free_kinds_ = {Kind::kTwoBalls, Kind::kChain, Kind::kPlatform};
};

Case mapped(Case made, const std::function<Tensor(const Tensor&)>& vector,
            const std::function<Tensor(const Tensor&)>& orientation) {
  made.state.position = vector(made.state.position);
  made.state.velocity = vector(made.state.velocity);
  made.state.orientation = orientation(made.state.orientation);
  made.scene.gravity = vector(made.scene.gravity);
  for (Plane& plane : made.scene.planes) {
    if (plane.body == Plane::kWorld) plane.normal = vector(plane.normal);
  }
  return made;
}

// The scene in axes that are turned by the rotation of this quaternion, [4].
Case turned_by(const Tensor& q, const Case& made) {
  const Tensor rotation = rotation_matrix(q);
  return mapped(
      made, [&](const Tensor& x) { return times(rotation, x); }, [&](const Tensor& x) { return product(q, x); });
}
Tensor random_quaternion() {
  const Tensor q = torch::randn({4}, torch::kDouble);
  return q / q.norm();
}
Tensor conjugate(const Tensor& q) { return q * numbers({1, -1, -1, -1}); }

TEST_P(RigidInvarianceTest, HisSpeedDoesNotMatter) {
  constexpr double kSpeeds[] = {0.4, 3, 30, 1000};
  expect_same(free_kinds_, [&](const Case& made) {
    prepared_ = turned_by(random_quaternion(), made);
    Description description{prepared_};
    const double speed = kSpeeds[choice(4)];
    const Tensor all = speed * torch::tanh(normal({1, 3}));
    description.other.state.velocity = prepared_.state.velocity + all;
    const Tensor time = made.scene.dt * torch::arange(1, made.rows + 1, torch::kDouble).view({-1, 1, 1, 1});
    description.state = [=](const RigidState& x) {
      return RigidState{x.position - time * all, x.orientation, x.velocity - all, x.angular_velocity};
    };
    description.speed = speed;
    return description;
  });
}

TEST_P(RigidInvarianceTest, HisAxesDoNotMatter) {
  expect_same(all_kinds_, [&](const Case& made) {
    prepared_ = made;
    Tensor q = random_quaternion();
    if (formulation() == RigidFormulation::kPolyhedral) {
      // The directions of friction turn with the scene only about the normal of the ground.
      if (made.bodies() == 1 && made.scene.planes.size() == 1) {
        const auto count = static_cast<double>(made.options.directions.count);
        q = rotation_by(numbers({0, 0, 2 * M_PI / count * (1 + choice(8))}));
      } else {
        prepared_.scene.mu = torch::zeros({1}, torch::kDouble);
      }
    }
    return Description{turned_by(q, prepared_), [q](const RigidState& x) {
                         const Tensor back = rotation_matrix(conjugate(q));
                         return RigidState{times(back, x.position), product(conjugate(q), x.orientation),
                                           times(back, x.velocity), x.angular_velocity};
                       }};
  });
}

TEST_P(RigidInvarianceTest, AMirrorChangesNothing) {
  const Tensor mirror = numbers({1, -1, 1}), turn = numbers({-1, 1, -1});
  const auto flip = [=](const Tensor& q) { return q * torch::cat({numbers({1}), turn}); };
  expect_same(all_kinds_, [&](const Case& made) {
    prepared_ = made;
    Case other = mapped(
        made, [&](const Tensor& x) { return x * mirror; }, flip);
    other.state.angular_velocity = made.state.angular_velocity * turn;
    for (RigidBody& body : other.scene.bodies) {
      body.centers = body.centers * mirror;
      body.inertia = mirror.unsqueeze(-1) * body.inertia * mirror;
    }
    for (Plane& plane : other.scene.planes) {
      if (plane.body != Plane::kWorld) plane.normal = plane.normal * mirror;
    }
    return Description{
        other, [=](const RigidState& x) {
          return RigidState{x.position * mirror, flip(x.orientation), x.velocity * mirror, x.angular_velocity * turn};
        }};
  });
}

TEST_P(RigidInvarianceTest, TheOrderDoesNotMatter) {
  // A box on three corners with the pyramid of friction may have several motions. The order of the unknowns chooses
  // one.
  std::vector<Kind> kinds = all_kinds_;
  if (formulation() == RigidFormulation::kPolyhedral) {
    std::erase_if(kinds, [](Kind kind) { return kind == Kind::kBoxOnGround || kind == Kind::kPlatform; });
  }
  expect_same(kinds, [&](const Case& made) {
    prepared_ = made;
    // Two balls have their tangents by the order of their bodies; a pyramid of even directions is the same for both.
    prepared_.options.directions.count += made.options.directions.count % 2;
    const auto shuffled = [&](std::size_t count) {
      std::vector<std::int64_t> order(count);
      std::iota(order.begin(), order.end(), 0);
      std::shuffle(order.begin(), order.end(), numbers_);
      return order;
    };
    const RigidScene& scene = prepared_.scene;
    const std::vector<std::int64_t> bodies = shuffled(scene.bodies.size()), planes = shuffled(scene.planes.size());
    const auto place_of = [&](std::int64_t body) {
      return body == Plane::kWorld ? body : std::find(bodies.begin(), bodies.end(), body) - bodies.begin();
    };
    Description description{prepared_};
    Case& other = description.other;
    std::vector<std::vector<std::int64_t>> balls;
    for (std::size_t k = 0; k < bodies.size(); ++k) {
      RigidBody body = scene.bodies[bodies[k]];
      balls.push_back(shuffled(body.radii.size(-1)));
      const Tensor order = torch::tensor(balls.back());
      body.centers = body.centers.index_select(-2, order);
      body.radii = body.radii.index_select(-1, order);
      other.scene.bodies[k] = body;
    }
    for (std::size_t h = 0; h < planes.size(); ++h) {
      other.scene.planes[h] = scene.planes[planes[h]];
      other.scene.planes[h].body = place_of(scene.planes[planes[h]].body);
    }
    const Tensor order = torch::tensor(bodies);
    RigidState& state = other.state;
    for (Tensor RigidState::*const x :
         {&RigidState::position, &RigidState::orientation, &RigidState::velocity, &RigidState::angular_velocity}) {
      state.*x = (prepared_.state.*x).index_select(1, order);
    }
    std::map<std::array<std::int64_t, 5>, std::int64_t> pairs;
    const auto key = [](ContactPair pair) {
      if (pair.other == ContactPair::Other::kBall && pair.other_body < pair.body) {
        std::swap(pair.body, pair.other_body);
        std::swap(pair.ball, pair.index);
      }
      return std::array<std::int64_t, 5>{pair.body, pair.ball, static_cast<std::int64_t>(pair.other), pair.other_body,
                                         pair.index};
    };
    std::int64_t index = 0;
    for (const ContactPair& pair : contact_pairs(scene)) pairs[key(pair)] = index++;
    std::vector<std::int64_t> from;
    for (ContactPair pair : contact_pairs(other.scene)) {
      const bool is_plane = pair.other == ContactPair::Other::kPlane;
      pair.ball = balls[pair.body][pair.ball];
      pair.index = is_plane ? planes[pair.index] : balls[pair.other_body][pair.index];
      pair.body = bodies[pair.body];
      if (pair.other_body != Plane::kWorld) pair.other_body = bodies[pair.other_body];
      from.push_back(pairs.at(key(pair)));
    }
    for (Tensor RigidScene::*const x :
         {&RigidScene::mu, &RigidScene::restitution, &RigidScene::stiffness, &RigidScene::dissipation}) {
      const Tensor& given = scene.*x;
      if (given.size(-1) == static_cast<std::int64_t>(from.size())) {
        other.scene.*x = given.index_select(-1, torch::tensor(from));
      }
    }
    const Tensor back = order.argsort();
    description.state = [back](const RigidState& x) {
      const auto sorted = [&](const Tensor& all) { return all.index_select(2, back); };
      return RigidState{sorted(x.position), sorted(x.orientation), sorted(x.velocity), sorted(x.angular_velocity)};
    };
    return description;
  });
}

TEST_P(RigidInvarianceTest, TheUnitsDoNotMatter) {
  expect_same(all_kinds_, [&](const Case& made) {
    prepared_ = made;
    // The sizes of his units: a number of the first observer is that of his times these.
    const double mass = std::pow(10, uniform(-3, 3)), length = std::pow(10, uniform(-3, 3)),
                 time = std::pow(10, uniform(-3, 3)), speed = length / time;
    Description description{made};
    Case& other = description.other;
    for (RigidBody& body : other.scene.bodies) {
      body.mass = body.mass / mass;
      body.inertia = body.inertia / (mass * length * length);
      body.centers = body.centers / length;
      body.radii = body.radii / length;
    }
    for (Plane& plane : other.scene.planes) plane.offset = plane.offset / length;
    other.scene.dt /= time;
    other.scene.gravity = made.scene.gravity * (time / speed);
    other.scene.stiffness = made.scene.stiffness * (time * time / mass);
    other.scene.dissipation = made.scene.dissipation / time;
    if (made.options.bounce_threshold) other.options.bounce_threshold = *made.options.bounce_threshold / speed;
    other.state.position = made.state.position / length;
    other.state.velocity = made.state.velocity / speed;
    other.state.angular_velocity = made.state.angular_velocity * time;
    description.state = [=](const RigidState& x) {
      return RigidState{x.position * length, x.orientation, x.velocity * speed, x.angular_velocity / time};
    };
    return description;
  });
}

INSTANTIATE_TEST_SUITE_P(Formulations, RigidInvarianceTest,
                         ::testing::Combine(::testing::Values(RigidFormulation::kExactCone,
                                                              RigidFormulation::kPolyhedral,
                                                              RigidFormulation::kCompliant),
                                            ::testing::Values(1.0, 1e-4, 1e-8)));

}  // namespace
}  // namespace lcp::physics::invariance
