#include "compliant/thrown_masses.h"

#include <ATen/ATen.h>

#include <filesystem>
#include <vector>

#include "lcp/physics/point_mass.h"
#include "run/error.h"
#include "run/excluded_flags.h"
#include "run/files.h"
#include "run/random.h"

namespace lcp::training {
namespace {

using physics::CompliantState;
using torch::Tensor;

constexpr std::int64_t kHeldOut = 5;  // one trajectory in this many is held out
constexpr std::size_t kShortest = 3;  // rows that a trajectory must have

ThrownMasses simulated(const ThrownMassFlags& flags, std::int64_t seed) {
  const std::int64_t count = flags.trajectories;
  const auto random = [&](Stream stream, std::int64_t k = 0) { return generator(seed, stream, k); };
  const auto around = [&](double mean, std::int64_t k) {
    return mean * (0.5 + torch::rand({count}, random(Stream::kStarts, k), torch::kDouble));
  };
  const Tensor zero = torch::zeros({count}, torch::kDouble);
  const CompliantState start{torch::stack({zero, zero, around(flags.height, 0)}, -1),
                             torch::stack({around(flags.speed, 1), zero, zero}, -1)};
  const auto particle =
      flags.particle(torch::tensor(flags.physics.mu, torch::kDouble), torch::tensor(flags.stiffness, torch::kDouble));
  const auto end = simulate(start, torch::zeros({flags.steps, count, 3}, torch::kDouble), particle).step.next;
  const auto measured = [&](const Tensor& first, const Tensor& rest, double deviation, Stream stream) {
    const Tensor all = torch::cat({first.unsqueeze(0), rest});
    const Tensor noise = deviation * torch::randn(all.sizes(), random(stream), torch::kDouble);
    noise.select(-1, 1).zero_();  // the data stay in the plane y = 0
    return all + noise;
  };
  return {measured(start.position, end.position, flags.position_noise, Stream::kPositionNoise),
          measured(start.velocity, end.velocity, flags.velocity_noise, Stream::kVelocityNoise)};
}

ThrownMasses from_file(const std::string& file) {
  const Table table = read_csv(file, {"x", "z", "v_x", "v_z"}, {"trajectory", "y", "v_y"});
  std::vector<std::size_t> begins = {0};
  for (std::size_t k = 1; table.has("trajectory") && k < table.rows(); ++k) {
    if (table["trajectory"][k] != table["trajectory"][k - 1]) begins.push_back(k);
  }
  const std::size_t length = begins.size() > 1 ? begins[1] : table.rows();
  for (std::size_t b = 0; b < begins.size(); ++b) {
    const std::size_t end = b + 1 < begins.size() ? begins[b + 1] : table.rows();
    if (end - begins[b] != length || length < kShortest) {
      throw UsageError(file + ", line " + std::to_string(begins[b] + 2) + ": a trajectory of " +
                       std::to_string(end - begins[b]) + " rows; all must be equally long, of at least " +
                       std::to_string(kShortest) + "; the first has " + std::to_string(length));
    }
  }
  if (begins.size() < 2) throw UsageError(file + ": one trajectory; it takes two, of which one is held out");
  const auto count = static_cast<std::int64_t>(begins.size());
  const auto column = [&](const char* name) {
    if (!table.has(name)) return torch::zeros({static_cast<std::int64_t>(length), count}, torch::kDouble);
    return torch::tensor(table[name], torch::kDouble).view({count, -1}).t();
  };
  return {torch::stack({column("x"), column("y"), column("z")}, -1).contiguous(),
          torch::stack({column("v_x"), column("v_y"), column("v_z")}, -1).contiguous()};
}

// The misfit of a rollout that begins at the first measured state.
Misfit misfit(const ThrownMasses& masses, const Tensor& position, const Tensor& velocity, double dt, double unit) {
  const Tensor v = masses.velocity.slice(0, 1), x = masses.position.slice(0, 1);
  const double time = dt * static_cast<double>(v.size(0));
  return {(velocity - v).square().mean() / unit, (position - x).square().mean() / (unit * time * time)};
}

CompliantState start_of(const ThrownMasses& masses) { return {masses.position[0], masses.velocity[0]}; }

Tensor no_forces(const ThrownMasses& masses, std::int64_t width) {
  return torch::zeros({masses.position.size(0) - 1, masses.count(), width}, masses.position.options());
}

}  // namespace

void ThrownMassFlags::add_to(CommandLine& line) {
  physics.add_to(line);
  line.add<double>("stiffness", stiffness, "Stiffness of the ground that the data are simulated with, N/m", positive);
  line.add<double>("dissipation", dissipation, "Damping of the ground over its stiffness, s, which is known",
                   nonnegative);
  line.add<double>(
      "sigma", regularization.sigma,
      "Regularisation of friction: velocity of a sticking contact over its impulse times the Delassus diagonal",
      positive);
  line.add<double>(
      "beta", regularization.beta,
      "Limit of the contacts' stiffness, as in simulate; where it acts, the data do not determine the stiffness",
      nonnegative);
  line.add<std::string>("data", data,
                        "CSV file with columns x,z,v_x,v_z[,y][,v_y][,trajectory] instead of simulated data", nullptr,
                        Role::kFile);
  line.add<std::int64_t>("trajectories", trajectories, "Trajectories to simulate; one in five is held out",
                         [](const std::int64_t& x) { return x >= 2 ? at_least_one(x) : "at least 2"; });
  line.add<std::int64_t>("steps", steps, "Steps of each trajectory",
                         [](const std::int64_t& x) { return x >= 2 ? at_least_one(x) : "at least 2"; });
  line.add<double>("height", height, "Mean initial height, m", nonnegative);
  line.add<double>("speed", speed, "Mean initial velocity along x, m/s", finite_number);
  line.add<double>("position-noise", position_noise, "Standard deviation of the noise on positions, m", nonnegative);
  line.add<double>("velocity-noise", velocity_noise, "Standard deviation of the noise on velocities, m/s", nonnegative);
}

void ThrownMassFlags::validate(const CommandLine& line) {
  if (data.empty()) return;
  exclude_flags(line, {"trajectories", "steps", "height", "speed", "position-noise", "velocity-noise"}, "--data");
  data = std::filesystem::weakly_canonical(data).string();
}

physics::CompliantParticle ThrownMassFlags::particle(const Tensor& mu, const Tensor& ground_stiffness) const {
  auto particle =
      physics::CompliantParticle::of(physics.mass, physics.dt, physics.gravity,
                                     physics::CompliantGround::of(physics.mu, stiffness, dissipation, regularization));
  particle.ground.mu = mu;
  particle.ground.stiffness = ground_stiffness;
  return particle;
}

ThrownMasses ThrownMasses::at(const Tensor& trajectories) const {
  return {position.index_select(1, trajectories), velocity.index_select(1, trajectories)};
}

bool ThrownMasses::in_plane() const {
  return (position.select(-1, 1) == 0).all().item<bool>() && (velocity.select(-1, 1) == 0).all().item<bool>();
}

ThrownMassData load_thrown_masses(const ThrownMassFlags& flags, std::int64_t seed) {
  const ThrownMasses all = flags.data.empty() ? simulated(flags, seed) : from_file(flags.data);
  const Tensor number = torch::arange(all.count()), last = number % kHeldOut == kHeldOut - 1;
  const Tensor out = last.any().item<bool>() ? last : number == all.count() - 1;
  return {all.at(out.logical_not().nonzero().squeeze(-1)), all.at(out.nonzero().squeeze(-1))};
}

Misfit compliant_misfit(const ThrownMasses& masses, const physics::CompliantParticle& particle, double unit) {
  const auto end = simulate(start_of(masses), no_forces(masses, 3), particle).step.next;
  return misfit(masses, end.position, end.velocity, particle.dt, unit);
}

Misfit rigid_misfit(const ThrownMasses& masses, const ThrownMassFlags& flags, const Tensor& mu, double unit) {
  const Tensor plane = torch::tensor({0, 2});
  const ThrownMasses flat{masses.position.index_select(-1, plane), masses.velocity.index_select(-1, plane)};
  auto mass = physics::PointMass::of(flags.physics.mass, flags.physics.dt, flags.physics.mu, flags.physics.gravity);
  mass.mu = mu;
  const auto end = simulate(physics::PointMassState{flat.position[0], flat.velocity[0]}, no_forces(flat, 2), mass,
                            {.stabilization = physics::Stabilization::kVelocity})
                       .step.next;
  return misfit(flat, end.position, end.velocity, flags.physics.dt, unit);
}

double velocity_rmse(const ThrownMasses& masses, const physics::CompliantParticle& particle) {
  const auto end = simulate(start_of(masses), no_forces(masses, 3), particle).step.next;
  return (end.velocity - masses.velocity.slice(0, 1)).to(torch::kDouble).square().mean().sqrt().item<double>();
}

}  // namespace lcp::training
