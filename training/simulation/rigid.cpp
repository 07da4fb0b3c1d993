// The systems cube, rolling, stack and spheres: rigid bodies in three dimensions.
#include <torch/types.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>

#include "lcp/physics/rigid_scene.h"
#include "lcp/physics/rotation.h"
#include "run/program.h"
#include "simulation/system.h"

namespace lcp::training {
namespace {

using namespace lcp::physics;
using torch::Tensor;

constexpr double kAtRest = 1e-6;  // m/s and rad/s, below which a body counts as resting

const std::vector<std::string> kPlace = {"x", "y", "z"};
const std::vector<std::string> kMoving = {"q_w", "q_x", "q_y",     "q_z",     "v_x",
                                          "v_y", "v_z", "omega_x", "omega_y", "omega_z"};
const std::vector<std::string> kForces = {"u_x", "u_y", "u_z", "torque_x", "torque_y", "torque_z"};

std::vector<std::string> both(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
const std::vector<std::string> kColumns = both(kPlace, kMoving);

Tensor numbers(const std::vector<double>& x) { return torch::tensor(x, torch::kDouble); }

// Bodies, planes and how all trajectories start, [trajectories or 1, bodies, ...].
struct Setting {
  std::vector<RigidBody> bodies;
  std::vector<Plane> planes;
  std::vector<std::array<double, 3>> sizes;  // of each body, m: its edges, or its diameter three times
  RigidState start;
};

class RigidSystem : public System {
 public:
  RigidSystem(const std::string& flags, const std::vector<std::string>& of_rollouts)
      : System({.formulations = {"exact_cone", "polyhedral", "compliant"},
                .default_steps = 400,
                .example = flags,
                .inputs = kPlace,
                .optional_inputs = both(kMoving, kForces),
                .rollout_flags = of_rollouts,
                .physics = {.dt = 0.005, .mu = 0.4}}) {}

  void add_to(CommandLine& line) override {
    line.add("restitution", restitution_,
             "Share of the normal velocity that an impact gives back; not of compliant contact", from_zero_to_one);
    line.add("substeps", options_.substeps, "Steps in each --dt", at_least_one);
    line.add("stabilization", options_.stabilization, "Share of a penetration that a step removes", from_zero_to_one);
    line.add("directions", options_.directions.count, "Directions of polyhedral friction",
             [](const std::int64_t& n) { return n >= 3 ? "" : "at least 3"; });
    line.add("stiffness", stiffness_, "Stiffness of compliant contacts, N/m", positive);
    line.add("dissipation", dissipation_, "Damping of compliant contacts over their stiffness, s", nonnegative);
    add_own(line);
  }

  void check_flags(const Request& request) const override {
    if (request.inputs) return;
    const Setting setting = set(request);
    const double depth = -contacts(setting.start, scene_of(setting)).gap.min().item<double>();
    constexpr double kRounding = 1e-9;  // m
    if (depth > kRounding) {
      throw UsageError("bodies overlap at the start, by " + short_number(depth, 3) +
                       " m; --height or the sizes of the bodies must be others");
    }
    const auto varies = [](const Tensor& x, std::int64_t of) { return !x.equal(x.narrow(of, 0, 1).expand_as(x)); };
    const RigidState first = varied(setting.start, request);
    if (request.trajectories > 1 && !varies(forces(request, bodies()), 1) && !varies(first.position, 0) &&
        !varies(first.velocity, 0) && !varies(first.angular_velocity, 0)) {
      throw UsageError("--trajectories must be 1, since all would be the same with these flags; got " +
                       std::to_string(request.trajectories));
    }
  }

  Motion run(const Request& request) const override {
    const Setting setting = set(request);
    const RigidScene scene = scene_of(setting);
    RigidOptions options = options_;
    options.formulation = request.formulation == "polyhedral"  ? RigidFormulation::kPolyhedral
                          : request.formulation == "compliant" ? RigidFormulation::kCompliant
                                                               : RigidFormulation::kExactCone;
    const RigidState first = request.inputs ? given_start(request) : varied(setting.start, request);
    const auto bodies = static_cast<std::int64_t>(scene.bodies.size());
    const Tensor u = forces(request, bodies);
    const RigidSolution solution = simulate(first, u, scene, options);
    const RigidCertificate certificate = certify_rollout(first, u, scene, options, solution);
    const RigidState& end = solution.next;
    const std::int64_t steps = u.size(0);

    const Tensor normal_impulses = solution.gamma.unflatten(-1, {-1, 3}).select(-1, 2),
                 normal = normal_impulses.sum(-1);
    const RigidState states{with_start(first.position, end.position), with_start(first.orientation, end.orientation),
                            with_start(first.velocity, end.velocity),
                            with_start(first.angular_velocity, end.angular_velocity)};
    const RigidContacts touching = contacts(states, scene);
    const Tensor gap = touching.gap.amin(-1);
    check_motion(states, touching, normal_impulses);
    const Tensor total = energy(states, scene);
    RigidState resting = states;
    resting.velocity = torch::zeros_like(states.velocity);
    resting.angular_velocity = resting.velocity;
    const Tensor potential = energy(resting, scene);
    const Tensor work =
        (u.narrow(-1, 0, 3) * (states.position.slice(0, 1) - states.position.slice(0, 0, -1))).flatten(-2).sum(-1);

    const Tensor position = request.with_position_noise(end.position);
    const Tensor velocity = request.with_velocity_noise(torch::cat({end.velocity, end.angular_velocity}, -1));
    const Tensor all = torch::cat({position, end.orientation, velocity}, -1);
    Motion motion;
    motion.data = motion_table(steps, request.count())
                      .add(columns(kColumns), all.flatten(-2))
                      .add("kinetic", (total - potential).slice(0, 1))
                      .add("potential", potential.slice(0, 1))
                      .add("gap", gap.slice(0, 1))
                      .add("normal_force", normal / physics.dt)
                      .add("support_force", support_force(states.velocity, u, scene))
                      .take();
    motion.residual = certificate.residual;
    motion.status = solution.status;
    const Tensor still =
        (end.velocity.abs().amax({-2, -1}) <= kAtRest) & (end.angular_velocity.abs().amax({-2, -1}) <= kAtRest);
    motion.sticking = still & (normal > 0);
    motion.certificate = {certificate.unsolved, {}, certificate.kinked};
    motion.error = request.inputs ? torch::full_like(total.slice(0, 1), std::numeric_limits<double>::quiet_NaN())
                                  : error(first, end, steps, motion.exact);
    const auto largest = [](const Tensor& x) { return x.nan_to_num().max().item<double>(); };
    motion.metrics["max_penetration"] = std::max(0.0, largest(-gap));
    // What a step adds to the energy beyond the work of the forces. Only impacts with restitution can: by Newton's law
    // where there is friction, too, and by g dt / 2 times the impulse, since velocities are those of the middles of
    // steps.
    motion.metrics["max_energy_gain"] = largest(total.slice(0, 1) - total.slice(0, 0, -1) - work);
    motion.metrics["energy_first"] = total[0][0].item<double>();
    motion.metrics["energy_last"] = total[-1][0].item<double>();
    motion.metrics["contact_fraction"] = (normal > 0).to(torch::kDouble).mean().item<double>();
    motion.metrics["mean_iterations"] = solution.iterations.to(torch::kDouble).mean().item<double>();
    Table shapes{{"body", "mass", "size_x", "size_y", "size_z"}, {}};
    for (std::size_t b = 0; b < scene.bodies.size(); ++b) {
      const auto& [x, y, z] = setting.sizes[b];
      shapes.add_row({static_cast<double>(b), scene.bodies[b].mass.item<double>(), x, y, z});
    }
    motion.tables.emplace_back("bodies.csv", std::move(shapes));
    Table fixed{{"normal_x", "normal_y", "normal_z", "offset"}, {}};
    for (const Plane& of : setting.planes) {
      if (of.body != Plane::kWorld) continue;
      const auto normal_of = [&](std::int64_t k) { return of.normal[k].item<double>(); };
      fixed.add_row({normal_of(0), normal_of(1), normal_of(2), of.offset.item<double>()});
    }
    motion.tables.emplace_back("planes.csv", std::move(fixed));
    return motion;
  }

 protected:
  // The vertical force on all bodies together by the ground and the walls, N: what changes their momentum beside
  // gravity and u. Forces between bodies cancel.
  Tensor support_force(const Tensor& velocity, const Tensor& u, const RigidScene& scene) const {
    Tensor force = torch::zeros({}, torch::kDouble);
    for (std::size_t b = 0; b < scene.bodies.size(); ++b) {
      const auto of = [&](const Tensor& x) { return x.select(-2, static_cast<std::int64_t>(b)).select(-1, 2); };
      force = force + scene.bodies[b].mass * (of(velocity).diff(1, 0) / physics.dt + physics.gravity) - of(u);
    }
    return force;
  }

  virtual void add_own(CommandLine& line) = 0;
  virtual std::int64_t bodies() const { return 1; }
  virtual Setting set(const Request& request) const = 0;

  /// The difference of the velocities from those of a solution in closed form, whose name it sets; NaN where there is
  /// none.
  virtual Tensor error(const RigidState&, const RigidState& end, std::int64_t, std::string&) const {
    return torch::full_like(end.position.select(-1, 0).select(-1, 0), std::numeric_limits<double>::quiet_NaN());
  }
  /// Forces on the bodies in all steps, [trajectories or 1, bodies, 6].
  virtual Tensor constant_forces(const Request&) const { return torch::zeros({1, bodies(), 6}, torch::kDouble); }

  /// Throws where a motion is not that of the bodies. states, touching: [steps + 1, trajectories, ...]; normal: [steps,
  /// trajectories, c], N s, the impulses.
  virtual void check_motion(const RigidState& /*states*/, const RigidContacts& /*touching*/,
                            const Tensor& /*normal*/) const {}

  Setting ground(double slope = 0) const { return {{}, {Plane::inclined(slope)}, {}, {}}; }

 private:
  RigidScene scene_of(const Setting& setting) const {
    return {setting.bodies,
            setting.planes,
            physics.dt / static_cast<double>(options_.substeps),
            numbers({0, 0, -physics.gravity}),
            numbers({physics.mu}),
            numbers({restitution_}),
            numbers({stiffness_}),
            numbers({dissipation_})};
  }

  // The columns of all bodies: of one the names themselves, of several with the number of the body behind.
  std::vector<std::string> columns(const std::vector<std::string>& names) const override {
    if (bodies() == 1) return names;
    std::vector<std::string> all;
    for (std::int64_t b = 0; b < bodies(); ++b) {
      for (const std::string& name : names) all.push_back(name + "_" + std::to_string(b));
    }
    return all;
  }

  RigidState given_start(const Request& request) const {
    const Tensor all = request.vector_input(columns(kColumns)).unflatten(-1, {bodies(), -1});
    for (std::int64_t b = 0; b < bodies(); ++b) {
      if (!request.inputs->has(columns({"q_w"})[b])) all.select(-2, b).select(-1, 3).fill_(1);
    }
    return {all.narrow(-1, 0, 3), all.narrow(-1, 3, 4), all.narrow(-1, 7, 3), all.narrow(-1, 10, 3)};
  }

  // All trajectories; those beside the first start with other velocities.
  static RigidState varied(const RigidState& start, const Request& request) {
    const auto whole = [&](const Tensor& x) { return x.to(request.dtype).expand({request.trajectories, -1, -1}); };
    const auto scaled = [&](const Tensor& x, std::int64_t k) {
      return whole(x) * request.variation(k).unsqueeze(-1).unsqueeze(-1);
    };
    return {whole(start.position), whole(start.orientation), scaled(start.velocity, 0),
            scaled(start.angular_velocity, 1)};
  }

  Tensor forces(const Request& request, std::int64_t count) const {
    if (!request.inputs) {
      return constant_forces(request).to(request.dtype).expand({request.steps, request.trajectories, count, 6});
    }
    return request.vector_input(columns(kForces)).unflatten(-1, {count, 6}).unsqueeze(0);
  }

  double restitution_ = 0.3, stiffness_ = 1e5, dissipation_ = 0.02;
  RigidOptions options_;
};

class Cube : public RigidSystem {
 public:
  Cube() : RigidSystem("--system cube --speed 2 --restitution 0.5", {"height", "speed", "spin", "orientation"}) {}

 protected:
  void add_own(CommandLine& line) override {
    line.add("size", size_, "Edges of the box, m", each(positive, "three numbers > 0", 3, 3));
    line.add("height", height_, "Height of its centre before the first step, m", positive);
    line.add("speed", speed_, "Velocity before the first step, along x, m/s", finite_number);
    line.add("spin", spin_, "Angular velocity before the first step, in its axes, rad/s", finite_numbers(3));
    line.add("orientation", orientation_, "Quaternion w x y z before the first step", [](const std::vector<double>& q) {
      const bool fits = q.size() == 4 && std::any_of(q.begin(), q.end(), [](double x) { return x != 0; });
      return fits ? "" : "4 numbers, not all 0";
    });
    line.add("slope", slope_, "Angle by which the ground descends along x, rad", finite_number);
  }

  Setting set(const Request&) const override {
    Setting setting = ground(slope_);
    setting.sizes = {{size_[0], size_[1], size_[2]}};
    setting.bodies = {RigidBody::box(physics.mass, setting.sizes[0])};
    setting.start = RigidState::at_rest(numbers({0, 0, height_}).view({1, 1, 3}));
    setting.start.orientation = numbers(orientation_).view({1, 1, 4});
    setting.start.velocity = numbers({speed_, 0, 0}).view({1, 1, 3});
    setting.start.angular_velocity = numbers(spin_).view({1, 1, 3});
    return setting;
  }

 private:
  std::vector<double> size_ = {0.1, 0.1, 0.1}, spin_ = {6, -8, 4}, orientation_ = {0.8, 0.3, -0.4, 0.2};
  double height_ = 0.4, speed_ = 1, slope_ = 0;
};

class Rolling : public RigidSystem {
 public:
  Rolling() : RigidSystem("--system rolling --speed 2 --mu 0.2", {"speed"}) {}

 protected:
  void add_own(CommandLine& line) override {
    line.add("radius", radius_, "Radius of the ball, m", positive);
    line.add("speed", speed_, "Velocity before the first step, down the ground, m/s", nonnegative);
    line.add("slope", slope_, "Angle by which the ground descends along x, rad",
             [](const double& x) { return x >= 0 && x < 1.5 ? "" : "at least 0 and less than 1.5"; });
  }

  Setting set(const Request&) const override {
    Setting setting = ground(slope_);
    setting.sizes = {{2 * radius_, 2 * radius_, 2 * radius_}};
    setting.bodies = {RigidBody::ball(physics.mass, radius_)};
    const double s = std::sin(slope_), c = std::cos(slope_);
    setting.start = RigidState::at_rest(numbers({radius_ * s, 0, radius_ * c}).view({1, 1, 3}));
    setting.start.velocity = numbers({speed_ * c, 0, -speed_ * s}).view({1, 1, 3});
    return setting;
  }

  // It slides with the acceleration g (sin - mu cos) until the friction has turned it fast enough to roll, and rolls
  // with 5 / 7 g sin, if friction suffices: tan <= 7 / 2 mu.
  Tensor error(const RigidState& first, const RigidState& end, std::int64_t steps, std::string& exact) const override {
    exact = "a ball that slides, then rolls";
    const double down = physics.gravity * std::sin(slope_), friction = physics.mu * physics.gravity * std::cos(slope_);
    const Tensor time = physics.dt * torch::arange(1, steps + 1, end.velocity.options()).unsqueeze(-1);
    const Tensor speed = first.velocity.squeeze(-2).norm(2, {-1});
    const double slowing = 3.5 * friction - down;  // of the velocity of the point of contact
    const Tensor until =
        slowing > 0 ? speed / slowing : torch::full_like(speed, std::numeric_limits<double>::infinity());
    const Tensor slid = torch::minimum(time, until);
    const Tensor expected = speed + (down - friction) * slid + 5.0 / 7 * down * (time - slid);
    return (end.velocity.squeeze(-2) * numbers({std::cos(slope_), 0, -std::sin(slope_)})).sum(-1).sub(expected).abs();
  }

 private:
  double radius_ = 0.1, speed_ = 2, slope_ = 0;
};

class StackSystem : public RigidSystem {
 public:
  StackSystem() : RigidSystem("--system stack --bodies 5 --steps 1000", {"push", "shift"}) {}

 protected:
  void add_own(CommandLine& line) override {
    line.add("bodies", bodies_, "Number of cubes", at_least_one);
    line.add("side", side_, "Edge of a cube, m", positive);
    line.add("shift", shift_, "Every second cube is this far along x, m; at most half the side", finite_number);
    line.add("push", push_, "Force along x on the uppermost cube in all steps, N", finite_number);
  }
  std::int64_t bodies() const override { return bodies_; }

  // Trajectories beside the first have other shifts, which keep away from half the side.
  Setting set(const Request& request) const override {
    Setting setting = ground();
    const double largest = std::max(std::abs(shift_), 0.45 * side_);
    const Tensor shift = (shift_ * request.variation(0).to(torch::kDouble)).clamp(-largest, largest);
    std::vector<Tensor> positions;
    for (std::int64_t b = 0; b < bodies_; ++b) {
      setting.sizes.push_back({side_, side_, side_});
      setting.bodies.push_back(RigidBody::box(physics.mass, setting.sizes.back()));
      // The top of a cube is a plane that only the cube above it can touch.
      if (b > 0) setting.planes.push_back({numbers({0, 0, 1}), numbers({side_ / 2}).squeeze(), b - 1, {b}});
      const Tensor none = torch::zeros_like(shift);
      positions.push_back(
          torch::stack({b % 2 == 0 ? none : shift, none, none + side_ * (static_cast<double>(b) + 0.5)}, -1));
    }
    setting.start = RigidState::at_rest(torch::stack(positions, -2));
    return setting;
  }

  void check_flags(const Request& request) const override {
    if (!request.inputs && std::abs(shift_) > side_ / 2) {
      throw UsageError("--shift must be at most half of --side, " + short_number(side_ / 2, 3) +
                       " m, or a cube would tip; got " + short_number(shift_, 3));
    }
    RigidSystem::check_flags(request);
  }

  // And other pushes.
  Tensor constant_forces(const Request& request) const override {
    Tensor u = RigidSystem::constant_forces(request).repeat({request.trajectories, 1, 1});
    u.select(-2, bodies_ - 1).select(-1, 0) = push_ * request.variation(1);
    return u;
  }

  // The top of a cube is a plane without an edge. It holds the cube above as the face does while the centre of their
  // pressure is on the face.
  void check_motion(const RigidState& states, const RigidContacts& touching, const Tensor& normal) const override {
    constexpr std::int64_t kCorners = 8;
    constexpr double kRoundOff = 1e-6;  // of the side
    const Tensor rotation = rotation_matrix(states.orientation), points = touching.point.slice(0, 0, -1);
    for (std::int64_t b = 1; b < bodies_; ++b) {
      // The corners of all cubes on the ground come first, then those of each cube on the one below.
      const std::int64_t first = kCorners * (bodies_ + b - 1);
      const Tensor impulse = normal.narrow(-1, first, kCorners).unsqueeze(-1);
      const Tensor middle = (impulse * points.narrow(-2, first, kCorners)).sum(-2) / impulse.sum(-2);
      const auto below = [&](const Tensor& x, std::int64_t dim) { return x.select(dim, b - 1).slice(0, 0, -1); };
      const Tensor in_axes = below(rotation, -3).mT().matmul((middle - below(states.position, -2)).unsqueeze(-1));
      const Tensor beyond = (in_axes.narrow(-2, 0, 2).abs() > (0.5 + kRoundOff) * side_).flatten(1).any(1);
      if (!beyond.any().item<bool>()) continue;
      throw std::runtime_error("in step " + std::to_string(beyond.to(torch::kByte).argmax().item<std::int64_t>() + 1) +
                               " cube " + std::to_string(b) +
                               " would tip over the edge of the one below, which --system stack does not compute; "
                               "--push, --shift or --steps must be less");
    }
  }

  Tensor error(const RigidState& first, const RigidState& end, std::int64_t steps, std::string& exact) const override {
    if (push_ != 0) return RigidSystem::error(first, end, steps, exact);
    exact = "a stack at rest";
    return end.velocity.abs().amax({-2, -1});
  }

 private:
  std::int64_t bodies_ = 3;
  double side_ = 0.1, shift_ = 0.01, push_ = 0;
};

class Spheres : public RigidSystem {
 public:
  Spheres() : RigidSystem("--system spheres --restitution 0.6 --steps 600", {"height"}) {}

 protected:
  void add_own(CommandLine& line) override {
    line.add("bodies", bodies_, "Number of balls", at_least_one);
    line.add("radius", radius_, "Mean radius, m; they differ by up to 30 %", positive);
    line.add("height", height_, "Height of the lowest ball before the first step, m", positive);
    line.add("width", width_, "Width of the tray into which they fall, m", positive);
  }
  std::int64_t bodies() const override { return bodies_; }

  // Balls of one density, in layers of four, above a tray with four slanted walls. Trajectories beside the first start
  // with other distances between them.
  Setting set(const Request& request) const override {
    Setting setting = ground();
    constexpr double kSlant = 1.1;  // rad, of the walls
    for (int k = 0; k < 4; ++k) {
      const double angle = k * M_PI / 2;
      setting.planes.push_back(
          {numbers({-std::sin(kSlant) * std::cos(angle), -std::sin(kSlant) * std::sin(angle), std::cos(kSlant)}),
           numbers({-std::sin(kSlant) * width_ / 2}).squeeze()});
    }
    const Tensor drawn = torch::rand({bodies_, 3}, generator(request.seed, Stream::kStarts, 2), torch::kDouble);
    const Tensor others = torch::rand({request.trajectories - 1, bodies_, 2},
                                      generator(request.seed, Stream::kStarts, 3), torch::kDouble);
    const Tensor shift = 0.1 * radius_ * (2 * torch::cat({drawn.narrow(-1, 1, 2).unsqueeze(0), others}) - 1);
    std::vector<double> places;
    for (std::int64_t b = 0; b < bodies_; ++b) {
      const double radius = radius_ * (1 + 0.3 * (2 * drawn[b][0].item<double>() - 1));
      const double layer = std::floor(static_cast<double>(b) / 4);
      setting.sizes.push_back({2 * radius, 2 * radius, 2 * radius});
      setting.bodies.push_back(RigidBody::ball(physics.mass * std::pow(radius / radius_, 3), radius));
      const double angle = M_PI / 2 * static_cast<double>(b % 4) + 0.4 * layer;
      places.insert(places.end(),
                    {2 * radius_ * std::cos(angle), 2 * radius_ * std::sin(angle), height_ + 2.8 * radius_ * layer});
    }
    setting.start = RigidState::at_rest(numbers(places).view({bodies_, 3}) + torch::constant_pad_nd(shift, {0, 1}));
    return setting;
  }

 private:
  std::int64_t bodies_ = 8;
  double radius_ = 0.05, height_ = 0.2, width_ = 0.35;
};

}  // namespace

std::unique_ptr<System> make_cube() { return std::make_unique<Cube>(); }
std::unique_ptr<System> make_rolling() { return std::make_unique<Rolling>(); }
std::unique_ptr<System> make_stack() { return std::make_unique<StackSystem>(); }
std::unique_ptr<System> make_spheres() { return std::make_unique<Spheres>(); }

}  // namespace lcp::training
