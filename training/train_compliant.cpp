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

#include "compliant/thrown_masses.h"
#include "run/command_line.h"
#include "run/error.h"
#include "run/fingerprint.h"
#include "run/output_folder.h"
#include "run/process_group.h"
#include "run/results.h"
#include "run/text.h"
#include "run/trainer.h"

namespace {

using namespace lcp::training;
using torch::Tensor;

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
  line.add<double>("initial-mu", initial_mu, "Friction coefficient to begin with", positive);
  line.add<double>("initial-stiffness", initial_stiffness, "Stiffness to begin with, N/m", positive);
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

int main(int argc, char** argv) {
  lcp::training::run_program(
      "train_compliant", [&] { return train_compliant(argc, argv); }, Processes::kDivided);
}
