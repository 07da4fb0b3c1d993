// Learns the friction and the stiffness of compliant ground through lcp::solve_contact, from the motion of thrown
// masses.
#include <ATen/ATen.h>
#include <torch/autograd.h>
#include <torch/nn/module.h>
#include <torch/utils.h>

#include <cmath>
#include <cstdint>
#include <iostream>
#include <utility>
#include <vector>

#include "lcp/physics/compliant_particle.h"
#include "lcp/physics/point_mass.h"
#include "run/program.h"

namespace {

using namespace lcp::training;
namespace physics = lcp::physics;
using physics::CompliantState;
using torch::Tensor;

constexpr std::int64_t kHeldOut = 5;  // one trajectory in this many is held out
constexpr std::size_t kShortest = 3;  // rows that a trajectory must have

struct ThrownMassFlags {
  PhysicsFlags block{.mass = 1, .dt = 0.01, .mu = 0.5};
  double stiffness = 1000;    // N/m
  double dissipation = 0.02;  // s
  lcp::RegularizationOptions regularization;
  std::string data;
  std::int64_t trajectories = 20, steps = 60;
  double height = 0.05, speed = 1;  // on average
  double position_noise = 1e-4, velocity_noise = 1e-3;

  void add_to(CommandLine& line);
  void validate(const CommandLine& line);
  physics::CompliantParticle particle(const Tensor& mu, const Tensor& stiffness) const;
};

// Measured states of b masses: [steps + 1, b, 3], m and m/s, float64.
struct ThrownMasses {
  Tensor position, velocity;

  std::int64_t count() const { return position.size(1); }
  ThrownMasses at(const Tensor& trajectories) const {
    return {position.index_select(1, trajectories), velocity.index_select(1, trajectories)};
  }
  ThrownMasses to(torch::ScalarType dtype) const { return {position.to(dtype), velocity.to(dtype)}; }

  // Whether all trajectories stay in the plane y = 0.
  bool in_plane() const {
    return (position.select(-1, 1) == 0).all().item<bool>() && (velocity.select(-1, 1) == 0).all().item<bool>();
  }
};

// Training data and the one trajectory in five that is held out.
struct ThrownMassData {
  ThrownMasses training, heldout;
};

// How far rollouts are from the measured trajectories: the mean square error of the velocities, and that of the
// positions divided by the square of the duration, both relative to `unit`, (m/s)^2.
struct Misfit {
  Tensor velocity, position;
  Tensor total() const { return velocity + position; }
};

void ThrownMassFlags::add_to(CommandLine& line) {
  block.add_to(line);
  line.add("stiffness", stiffness, "Stiffness of the ground that the data are simulated with, N/m", positive);
  line.add("dissipation", dissipation, "Damping of the ground over its stiffness, s, which is known", nonnegative);
  line.add("sigma", regularization.sigma,
           "Regularisation of friction: velocity of a sticking contact over its impulse times the Delassus diagonal",
           positive);
  line.add("beta", regularization.beta,
           "Limit of the contacts' stiffness, as in simulate; where it acts, the data do not determine the stiffness",
           nonnegative);
  line.add("data", data, "CSV file with columns x,z,v_x,v_z[,y][,v_y][,trajectory] instead of simulated data", nullptr,
           Role::kFile);
  line.add("trajectories", trajectories, "Trajectories to simulate; one in five is held out", at_least_two);
  line.add("steps", steps, "Steps of each trajectory", at_least_two);
  line.add("height", height, "Mean initial height, m", nonnegative);
  line.add("speed", speed, "Mean initial velocity along x, m/s", finite_number);
  line.add("position-noise", position_noise, "Standard deviation of the noise on positions, m", nonnegative);
  line.add("velocity-noise", velocity_noise, "Standard deviation of the noise on velocities, m/s", nonnegative);
}

void ThrownMassFlags::validate(const CommandLine& line) {
  if (data.empty()) return;
  line.exclude({"trajectories", "steps", "height", "speed", "position-noise", "velocity-noise"}, "--data");
}

physics::CompliantParticle ThrownMassFlags::particle(const Tensor& mu, const Tensor& ground_stiffness) const {
  auto particle =
      physics::CompliantParticle::of(block.mass, block.dt, block.gravity,
                                     physics::CompliantGround::of(block.mu, stiffness, dissipation, regularization));
  particle.ground.mu = mu;
  particle.ground.stiffness = ground_stiffness;
  return particle;
}

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
      flags.particle(torch::tensor(flags.block.mu, torch::kDouble), torch::tensor(flags.stiffness, torch::kDouble));
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
    return column_of(table, name).view({count, -1}).t();
  };
  return {torch::stack({column("x"), column("y"), column("z")}, -1).contiguous(),
          torch::stack({column("v_x"), column("v_y"), column("v_z")}, -1).contiguous()};
}

// Reads --data, of equally long trajectories, or simulates. Throws a UsageError that names the file.
ThrownMassData load_thrown_masses(const ThrownMassFlags& flags, std::int64_t seed) {
  const ThrownMasses all = flags.data.empty() ? simulated(flags, seed) : from_file(flags.data);
  const Tensor number = torch::arange(all.count()), last = number % kHeldOut == kHeldOut - 1;
  const Tensor out = last.any().item<bool>() ? last : number == all.count() - 1;
  return {all.at(out.logical_not().nonzero().squeeze(-1)), all.at(out.nonzero().squeeze(-1))};
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

Misfit compliant_misfit(const ThrownMasses& masses, const physics::CompliantParticle& particle, double unit) {
  const auto end = simulate(start_of(masses), no_forces(masses, 3), particle).step.next;
  return misfit(masses, end.position, end.velocity, particle.dt, unit);
}

// The same for rigid ground by lcp::solve, in the plane y = 0. It is computed to compare its gradient in mu with that
// of compliant ground.
Misfit rigid_misfit(const ThrownMasses& masses, const ThrownMassFlags& flags, const Tensor& mu, double unit) {
  const Tensor plane = torch::tensor({0, 2});
  const ThrownMasses flat{masses.position.index_select(-1, plane), masses.velocity.index_select(-1, plane)};
  auto mass = physics::PointMass::of(flags.block.mass, flags.block.dt, flags.block.mu, flags.block.gravity);
  mass.mu = mu;
  const auto end = simulate(physics::PointMassState{flat.position[0], flat.velocity[0]}, no_forces(flat, 2), mass,
                            {.stabilization = physics::Stabilization::kVelocity})
                       .step.next;
  return misfit(flat, end.position, end.velocity, flags.block.dt, unit);
}

// Root mean square error of the velocities of rollouts, m/s.
double velocity_rmse(const ThrownMasses& masses, const physics::CompliantParticle& particle) {
  const auto end = simulate(start_of(masses), no_forces(masses, 3), particle).step.next;
  return (end.velocity - masses.velocity.slice(0, 1)).to(torch::kDouble).square().mean().sqrt().item<double>();
}

// The rollouts of a chunk are one operator, whose solves take longer than its call already with these few.
constexpr std::int64_t kTrajectoriesOfAChunk = 16;

// The held-out error of a fit that explains its data is at most this multiple of the noise, and this share of the size
// of the velocities.
constexpr double kNoiseShare = 3, kNegligible = 0.02;

// The learned parameters are the logarithms of friction and stiffness. Both stay > 0, and the optimizer's steps are
// relative.
struct Ground : torch::nn::Module {
  Ground(double mu, double stiffness, torch::ScalarType dtype)
      : log_mu(register_parameter("log_mu", torch::full({}, std::log(mu), dtype))),
        log_stiffness(register_parameter("log_stiffness", torch::full({}, std::log(stiffness), dtype))) {}

  Tensor mu() const { return log_mu.exp(); }
  Tensor stiffness() const { return log_stiffness.exp(); }

  Tensor log_mu, log_stiffness;
};

// d misfit / d mu.
template <class Loss>
double slope_in_mu(double at, torch::ScalarType dtype, const Loss& loss) {
  const torch::AutoGradMode grad(true);
  const Tensor mu = torch::full({}, at, dtype).requires_grad_();
  return torch::autograd::grad({loss(mu).total()}, {mu})[0].template item<double>();
}

int train_compliant(int argc, const char* const* argv) {
  CommandLine line(
      "train_compliant",
      "Learns friction and stiffness of compliant ground from masses that are thrown on it, by comparing\n"
      "the motion that lcp::solve_contact gives with the measured one. Where friction starts so large that\n"
      "every mass would stick on rigid ground as soon as it touches it, the gradient of lcp::solve is\n"
      "exactly 0; on compliant ground it is not, since a mass slides until it is pressed down enough.");
  RunFlags run;
  TrainingFlags training{.iterations = 200, .learning_rate = 0.05};
  ThrownMassFlags flags;
  double initial_mu = 3, initial_stiffness = 3000;
  run.add_to(line);
  training.add_to(line);
  flags.add_to(line);
  line.add("initial-mu", initial_mu, "Friction coefficient to begin with", positive);
  line.add("initial-stiffness", initial_stiffness, "Stiffness to begin with, N/m", positive);
  line.footer(
      "Example: train_compliant --initial-mu 5 --initial-stiffness 200 --out runs/far\n"
      "Data of your own: rows of equally long trajectories, a time step apart, as simulate --system\n"
      "compliant_particle writes them; --mu and --stiffness are then only drawn beside the result.");
  if (const auto status = line.parse(argc, argv)) return *status;
  flags.validate(line);
  FolderLock lock(run.out);
  const std::optional<Checkpoint> checkpoint = resume(line, lock, training.resume);
  torch::set_num_threads(static_cast<int>(run.threads));

  const ThrownMassData data = load_thrown_masses(flags, run.seed);
  OutputFolder out(line, run, std::move(lock));
  Trainer trainer(out, run, training, checkpoint);
  const ThrownMasses learned = data.training.to(run.scalar_type()), heldout = data.heldout.to(run.scalar_type());
  const double unit = learned.velocity.square().mean().item<double>();
  Ground ground(initial_mu, initial_stiffness, run.scalar_type());
  const auto particle = [&] { return flags.particle(ground.mu(), ground.stiffness()); };
  const Tensor start_stiffness = ground.stiffness().detach();
  const double slope = slope_in_mu(initial_mu, run.scalar_type(), [&](const Tensor& mu) {
    return compliant_misfit(learned, flags.particle(mu, start_stiffness), unit);
  });
  nlohmann::json rigid_slope;
  if (learned.in_plane()) {
    rigid_slope = slope_in_mu(initial_mu, run.scalar_type(),
                              [&](const Tensor& mu) { return rigid_misfit(learned, flags, mu, unit); });
  }
  if (!run.quiet) {
    std::cout << "gradient in mu at the start: " << short_number(slope) << "; on rigid ground, by lcp::solve: "
              << (rigid_slope.is_null() ? "none, since the masses leave the plane"
                                        : short_number(rigid_slope.get<double>()))
              << std::endl;
  }

  const auto stopped = trainer.train(
      ground, learned.count(), learned.count(), fingerprint({data.training.position, data.training.velocity}),
      [&](const Tensor& rows, double) -> LossTerms {
        const Misfit misfit = compliant_misfit(learned.at(rows), particle(), unit);
        return {{"loss", misfit.total()}, {"velocity_misfit", misfit.velocity}, {"position_misfit", misfit.position}};
      },
      [&]() -> NamedValues {
        return {{"heldout_rmse", velocity_rmse(heldout, particle())},
                {"mu", ground.mu().item<double>()},
                {"stiffness", ground.stiffness().item<double>()}};
      },
      {.chunk = kTrajectoriesOfAChunk});
  if (stopped) return *stopped;
  if (!ProcessGroup::current().is_first()) return 0;

  const torch::NoGradGuard no_grad;
  const double error = velocity_rmse(heldout, particle());
  // Rollouts begin at measured states, so that the noise of the start is in each of their velocities.
  const double noise = flags.data.empty() ? flags.velocity_noise : 0;
  const double allowed = kNoiseShare * noise + kNegligible * std::sqrt(unit);
  write_results(out,
                {{"mu", ground.mu().item<double>()},
                 {"stiffness", ground.stiffness().item<double>()},
                 {"heldout_rmse", error},
                 {"unexplained", unexplained("held-out velocities", error, allowed, " m/s")},
                 {"gradient_at_start", slope},
                 {"lcp_gradient_at_start", rigid_slope},
                 {"training_trajectories", learned.count()},
                 {"heldout_trajectories", heldout.count()},
                 {"final_loss", trainer.history()["loss"].back()}},
                {"training.png"});
  return 0;
}

}  // namespace

int main(int argc, char** argv) { run_program("train_compliant", train_compliant, argc, argv, Processes::kDivided); }
