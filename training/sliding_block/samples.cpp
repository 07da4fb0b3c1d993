#include "sliding_block/samples.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <functional>
#include <iostream>

#include "run/program.h"

namespace lcp::training {
namespace {

using torch::Tensor;

constexpr std::int64_t kTrajectorySteps = 50;

template <class F>
Tensor if_defined(const Tensor& x, const F& f) {
  return x.defined() ? f(x) : x;
}

// The friction forces lambda_plus and lambda_minus >= 0 of the traditional formulation. Where a block sticks, the step
// determines only their difference f: their sum may be anything from |f| (share 0) to the friction limit (share 1).
Tensor split_friction(const physics::SlidingBlockStep& step, const Tensor& limit, const Tensor& share) {
  const Tensor spare = (limit - step.lambda_plus - step.lambda_minus).clamp_min(0) * share / 2;
  return torch::stack({step.lambda_plus + spare, step.lambda_minus + spare}, -1);
}

Tensor split_shares(const std::string& split, std::int64_t count, at::Generator generator) {
  if (split == "random") return at::rand({count}, std::move(generator), torch::kDouble);
  return at::full({count}, split == "minimal" ? 0.0 : split == "half" ? 0.5 : 1.0, torch::kDouble);
}

// The options with which a part of the data is simulated.
struct PartOptions {
  const SampleFlags& flags;
  PhysicsFlags block;    // the block of this part of the data
  double unit_force;     // N, the unit of the random forces
  double unit_velocity;  // m/s, the unit of the random velocities
  std::int64_t seed;
  std::int64_t part;  // the index of the part; each has its own random numbers
};

Samples step_once(const Tensor& v, const Tensor& u, const PartOptions& options) {
  const physics::SlidingBlock block = sliding_block(options.block);
  const physics::SlidingBlockStep exact = physics::exact_step(v, u, block);
  Samples samples{v, u, exact.v_next, {}, {}};
  if (options.flags.known_forces == KnownForces::kContact) {
    const Tensor share =
        split_shares(options.flags.split, v.size(0), generator(options.seed, Stream::kForceSplits, options.part));
    samples.lambda = split_friction(exact, block.max_friction(), share);
    samples.gamma = exact.gamma;
  } else if (options.flags.known_forces != KnownForces::kNone) {
    const bool physical = options.flags.forces == "physical";
    const physics::SlidingBlockStep step =
        physical ? exact : physics::step(v, u, block, physics::SlidingBlockFormulation::kDirect).step;
    samples.lambda = torch::stack({step.lambda_plus, step.lambda_minus}, -1);
    samples.v_next = step.v_next;
  }
  return samples;
}

Samples trajectories(std::int64_t count, const PartOptions& options) {
  const auto numbers = [&](Stream stream) { return generator(options.seed, stream, options.part); };
  Tensor v = random_speeds(count, options.block, numbers(Stream::kSpeeds));
  const Tensor u = random_forces(kTrajectorySteps, count, options.block, numbers(Stream::kForces));
  std::vector<Tensor> states;
  for (std::int64_t k = 0; k < kTrajectorySteps; ++k) {
    states.push_back(v);
    v = physics::exact_step(v, u[k], sliding_block(options.block)).v_next;
  }
  return step_once(torch::stack(states, 1).flatten(), u.t().flatten(), options);
}

Samples independent(std::int64_t count, const PartOptions& options) {
  const std::string& states = options.flags.states;
  const auto draw = [&](Stream stream, double low, double high) {
    auto numbers = generator(options.seed, stream, options.part);
    if (states == "mixed") return at::randn({count}, numbers, torch::kDouble);
    return low + (high - low) * at::rand({count}, numbers, torch::kDouble);
  };
  const bool gentle = states == "gentle";
  const Tensor v = draw(Stream::kSpeeds, gentle ? 0.2 : -0.4, gentle ? 0.8 : 0.4);
  const Tensor u = draw(Stream::kForces, gentle ? 0.2 : -0.4, gentle ? 1.0 : 0.4);
  return step_once(v * options.unit_velocity, u * options.unit_force, options);
}

// Simulates at least `count` samples.
Samples simulated(std::int64_t count, const PartOptions& options) {
  if (options.flags.states == "trajectories")
    return trajectories((count + kTrajectorySteps - 1) / kTrajectorySteps, options);
  return independent(count, options);
}

Samples joined(const std::vector<Samples>& parts) {
  const auto all = [&](Tensor Samples::*member) {
    std::vector<Tensor> tensors(parts.size());
    std::transform(parts.begin(), parts.end(), tensors.begin(), std::mem_fn(member));
    return tensors.front().defined() ? at::cat(tensors) : Tensor();
  };
  return {all(&Samples::v), all(&Samples::u), all(&Samples::v_next), all(&Samples::lambda), all(&Samples::gamma)};
}

Data simulate(const RunFlags& run, std::int64_t count, const PhysicsFlags& block, const SampleFlags& flags) {
  const torch::NoGradGuard no_grad;
  const double force = block.max_friction() > 0 ? block.max_friction() : 1;
  const auto options = [&](double mu, std::int64_t part) {
    PhysicsFlags part_block = block;
    part_block.mu = mu;
    return PartOptions{flags, part_block, force, force * block.dt / block.mass, run.seed, part};
  };
  std::vector<double> mus = {block.mu};
  mus.insert(mus.end(), flags.more_mus.begin(), flags.more_mus.end());
  const auto kinds = static_cast<std::int64_t>(mus.size());
  std::vector<Samples> parts;
  for (std::int64_t k = 0; k < kinds; ++k) {
    const std::int64_t share = (count * (k + 1)) / kinds - (count * k) / kinds;
    if (share == 0) continue;
    const Samples part = simulated(share, options(mus[static_cast<std::size_t>(k)], k));
    parts.push_back(part.at(at::arange(share)));
  }
  Data data{joined(parts), simulated(std::max<std::int64_t>(10 * kTrajectorySteps, count / (kHeldOutOneIn - 1)),
                                     options(block.mu, kinds))};
  const auto noise = [&](const Tensor& x, double deviation, std::int64_t k) {
    return deviation * at::randn(x.sizes(), generator(run.seed, Stream::kVelocityNoise, k), torch::kDouble);
  };
  Samples& training = data.training;
  if (flags.velocity_noise > 0) {
    training.v_next = training.v_next + noise(training.v_next, flags.velocity_noise, 0);
    if (training.gamma.defined()) {
      training.gamma = (training.gamma + noise(training.gamma, flags.velocity_noise, 1)).relu();
    }
  }
  if (flags.force_noise > 0) {
    const bool fictitious = flags.known_forces != KnownForces::kContact && flags.forces == "fictitious";
    const Tensor lambda = training.lambda + noise(training.lambda, flags.force_noise, 2);
    training.lambda = fictitious ? lambda : lambda.relu();
  }
  return data;
}

// Refuses forces of another formulation, which would be learned without any sign of the mistake.
void check_forces(const std::string& file, const Samples& all, const PhysicsFlags& block, const SampleFlags& flags,
                  bool quiet) {
  const double smallest = all.lambda.min().item<double>(), largest = all.lambda.max().item<double>();
  if (flags.known_forces == KnownForces::kContact) {
    if (smallest < 0) {
      throw UsageError(file +
                       ": lambda_plus or lambda_minus is negative: these are forces of the direct formulation; "
                       "simulate --formulation traditional writes those that this program learns from");
    }
  } else if (flags.forces == "fictitious" && smallest >= 0 && largest > 0) {
    throw UsageError(
        file +
        ": lambda_plus and lambda_minus are >= 0 in every row: these are physical friction forces, "
        "which no affine model fits; --forces physical " +
        (flags.known_forces == KnownForces::kSlack ? "shows how it fails" : "learns from them by a relu head") +
        ", and simulate --formulation direct writes the fictitious ones");
  } else if (flags.forces == "physical" && smallest < 0) {
    throw UsageError(file +
                     ": lambda_plus or lambda_minus is negative, as forces of the direct formulation are; "
                     "--forces fictitious learns from them");
  }
  if (largest > block.max_friction() * (1 + 1e-6) && !quiet) {
    std::cerr << "warning: " << file << " has a friction force of " << largest
              << " N, above mu m g = " << block.max_friction() << " N of --mu, --mass and --gravity" << std::endl;
  }
}

Data read(const std::string& file, const PhysicsFlags& block, const SampleFlags& flags, bool quiet) {
  std::vector<std::string> columns = {"v", "u", "v_next"};
  if (flags.known_forces != KnownForces::kNone) columns.insert(columns.end(), {"lambda_plus", "lambda_minus"});
  if (flags.known_forces == KnownForces::kContact) columns.emplace_back("gamma");
  const Table table = read_csv(file, columns, {"trajectory"});
  const auto column = [&](const char* name) { return column_of(table, name); };
  Samples all{column("v"), column("u"), column("v_next"), {}, {}};
  if (flags.known_forces != KnownForces::kNone) {
    all.lambda = columns_of(table, {"lambda_plus", "lambda_minus"});
    check_forces(file, all, block, flags, quiet);
  }
  if (flags.known_forces == KnownForces::kContact) all.gamma = column("gamma");

  const Tensor heldout = heldout_rows(table, file);
  return {all.at(~heldout), all.at(heldout)};
}

}  // namespace

physics::SlidingBlock sliding_block(const PhysicsFlags& flags) {
  return physics::SlidingBlock::of(flags.mass, flags.dt, flags.mu, flags.gravity);
}

Tensor random_forces(std::int64_t steps, std::int64_t trajectories, const PhysicsFlags& flags,
                     at::Generator generator) {
  return torch::randn({steps, trajectories}, std::move(generator), torch::kDouble) * 1.5 * flags.max_friction();
}

Tensor random_speeds(std::int64_t trajectories, const PhysicsFlags& flags, at::Generator generator) {
  const double one_step = flags.dt * flags.mu * flags.gravity;
  return torch::randn({trajectories}, std::move(generator), torch::kDouble) * (one_step > 0 ? 3 * one_step : 1);
}

Samples Samples::at(const Tensor& rows) const {
  const auto chosen = [&](const Tensor& x) { return if_defined(x, [&](const Tensor& y) { return y.index({rows}); }); };
  return {chosen(v), chosen(u), chosen(v_next), chosen(lambda), chosen(gamma)};
}

Samples Samples::to(torch::ScalarType dtype) const {
  const auto cast = [&](const Tensor& x) { return if_defined(x, [&](const Tensor& y) { return y.to(dtype); }); };
  return {cast(v), cast(u), cast(v_next), cast(lambda), cast(gamma)};
}

Tensor Samples::velocities() const { return torch::stack({v_next.relu(), (-v_next).relu()}, -1); }

std::int64_t Data::fingerprint() const {
  std::vector<Tensor> tensors;
  for (const Samples& part : {training, heldout}) {
    for (const Tensor& x : {part.v, part.u, part.v_next, part.lambda, part.gamma}) {
      if (x.defined()) tensors.push_back(x);
    }
  }
  return training::fingerprint(tensors);
}

void SampleFlags::add_to(CommandLine& line) {
  line.add("samples", samples, "Steps to simulate for training", at_least_one);
  line.add("data", data, "CSV file to learn from instead of simulated data", nullptr, Role::kFile);
  line.add("states", states,
           "Simulated v and u: trajectories (of 50 steps under random forces), mixed (normal), "
           "gentle (slow, to the right) or sticking",
           one_of({"trajectories", "mixed", "gentle", "sticking"}));
  if (known_forces == KnownForces::kFriction || known_forces == KnownForces::kSlack) {
    line.add("forces", forces,
             std::string("Friction forces to learn from: fictitious (of the direct formulation, one is negative)") +
                 (known_forces == KnownForces::kFriction
                      ? ", physical (>= 0) or none (from motion alone; the default where --start is given)"
                      : " or physical (>= 0)"),
             known_forces == KnownForces::kFriction ? one_of({"fictitious", "physical", "none"})
                                                    : one_of({"fictitious", "physical"}));
  }
  if (known_forces == KnownForces::kFriction) {
    line.add("more-mus", more_mus, "Friction coefficients of further blocks in the simulated training data",
             each(nonnegative, "finite numbers >= 0", 0));
  }
  if (known_forces == KnownForces::kContact) {
    line.add("split", split,
             "How the friction of a simulated block that sticks is divided into lambda_plus and lambda_minus, "
             "of which only the difference is determined: minimal (one is 0), maximal (their sum is mu m g), "
             "half or random",
             one_of({"minimal", "maximal", "half", "random"}));
  }
  line.add("velocity-noise", velocity_noise,
           std::string("Standard deviation of normal noise on v_next") +
               (known_forces == KnownForces::kContact ? " and gamma" : "") + " of the simulated training data, m/s",
           nonnegative);
  if (known_forces != KnownForces::kNone) {
    line.add("force-noise", force_noise,
             "Standard deviation of normal noise on the forces of the simulated training data, N; forces that "
             "cannot be negative are 0 where the noise would make them so",
             nonnegative);
  }
}

void SampleFlags::validate(const CommandLine& line) {
  if (data.empty()) return;
  line.exclude({"samples", "states", "split", "more-mus", "velocity-noise", "force-noise"}, "--data");
}

Data load_data(const RunFlags& run, const PhysicsFlags& block, const SampleFlags& flags) {
  return flags.data.empty() ? simulate(run, flags.samples, block, flags) : read(flags.data, block, flags, run.quiet);
}

}  // namespace lcp::training
