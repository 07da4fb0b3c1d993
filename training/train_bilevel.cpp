// Learns the friction of a sliding block by the bilevel soft-constraint loss, from motion alone [Notes, 3.2.4].
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <iostream>

#include "friction/train_friction_model.h"
#include "lcp/learning/bilevel_loss.h"
#include "run/program.h"

namespace {

using namespace lcp::training;
using lcp::learning::BilevelLoss;
using lcp::learning::BilevelWeights;
using lcp::nn::TraditionalModel;
using lcp::nn::TraditionalModelImpl;
using torch::Tensor;

struct Weights {
  std::vector<double> alpha = {1, 100, 1000};
  double continuation = 1e-4;
  bool hard = false;

  void add_to(CommandLine& line) {
    line.add("alpha", alpha, "Weights A1 A2 A3 of prediction error, complementarity and violated constraints",
             [](const std::vector<double>& x) {
               const bool valid =
                   x.size() == 3 && x[0] > 0 && x[1] >= 0 && x[2] > 0 && std::isfinite(x[0] + x[1] + x[2]);
               return valid ? "" : "three finite numbers, A1 > 0, A2 >= 0, A3 > 0";
             });
    line.add("continuation", continuation,
             "A2 grows from this fraction of itself to its whole value in the first half of the training: a small "
             "A2 / A1 converges from far starts, a large one is exact, also with noise",
             [](const double& x) { return x > 0 && x <= 1 ? "" : "> 0 and <= 1"; });
    line.add_switch("hard", hard,
                    "Enforce the constraints exactly instead of penalising violations with the weight A3");
  }

  BilevelWeights at(double done) const {
    const double fraction = std::pow(continuation, std::max(0.0, 1 - 2 * done));
    return BilevelWeights{
        .prediction = alpha[0], .complementarity = alpha[1] * fraction, .violation = alpha[2], .hard = hard};
  }
};

// The part of v_next that friction has to explain, in the model's units, [n, 1].
Tensor unexplained(const TraditionalModel& model, const Samples& samples) {
  return ((samples.v_next - samples.v) / model->velocity_unit() - samples.u / model->options.force_unit())
      .unsqueeze(-1);
}

BilevelLoss loss_of(const TraditionalModel& model, const Samples& samples, const Tensor& G, const Tensor& f,
                    const BilevelWeights& weights) {
  const Tensor B = at::tensor({1., -1., 0.}, G.options()).unsqueeze(0);
  return lcp::learning::bilevel_loss(G, f, B, unexplained(model, samples), weights);
}

double objective(const TraditionalModel& model, const Samples& samples, const Tensor& G, const Tensor& f,
                 const BilevelWeights& weights) {
  return loss_of(model, samples, G, f, weights).value.mean().item<double>();
}

double objective_at_truth(const TraditionalModel& model, const Samples& samples, const PhysicsFlags& block,
                          const BilevelWeights& weights) {
  const double limit = block.max_friction() / model->options.force_unit();
  const Tensor rows = TraditionalModelImpl::true_rows(limit).to(samples.v.dtype());
  const Tensor f = (rows.slice(1, 3) * states(model, samples).unsqueeze(-2)).sum(-1);
  return objective(model, samples, rows.slice(1, 0, 3), f, weights);
}

// At the true parameters the constraints hold exactly with multipliers a2 lambda*. The penalty is exact only if its
// weight a3 is at least as large.
void warn_of_weights(const TraditionalModel& model, const Samples& samples, const BilevelWeights& weights) {
  const double force = unexplained(model, samples).abs().max().item<double>();
  const double velocity = samples.v_next.abs().max().item<double>() / model->velocity_unit();
  const double needed = weights.complementarity * std::max(force, velocity);
  if (weights.hard || weights.violation >= needed) return;
  std::cerr << "warning: --alpha: A3 = " << weights.violation << " is below A2 max lambda* = " << needed
            << " of these data: the true friction is then no minimiser" << std::endl;
}

int train_bilevel(int argc, const char* const* argv) {
  CommandLine line("train_bilevel",
                   "Learns a sliding block of unknown friction by the forces that explain its motion best while they\n"
                   "nearly satisfy the learned LCP. Unlike the prediction error of train_in_the_loop, this loss has a\n"
                   "gradient also where the learned friction is much too large.");
  FrictionFlags flags;
  Weights weights;
  weights.add_to(line);
  bool warned = false;
  const FrictionMethod method{
      [&](TraditionalModel& model, const Samples& batch, const Tensor& G, const Tensor& f, double done) {
        const auto loss = loss_of(model, batch, G, f, weights.at(done));
        return at::where(loss.status == 0, loss.value, 0).mean(-1);
      },
      "objective", [&] { return weights.alpha[2]; },
      [&](TraditionalModel& model, const Samples& training) -> NamedValues {
        if (!warned && !flags.run.quiet) warn_of_weights(model, training, weights.at(1));
        warned = true;
        return {};
      },
      [&](TraditionalModel& model, const Samples& training) -> nlohmann::json {
        const Tensor G = model->G_of(training.v, training.u), f = model->f_of(training.v, training.u);
        return {{"objective", objective(model, training, G, f, weights.at(1))},
                {"objective_at_truth", objective_at_truth(model, training, flags.block, weights.at(1))}};
      }};
  return train_friction_model(line, flags, method, argc, argv);
}

}  // namespace

int main(int argc, char** argv) { run_program("train_bilevel", train_bilevel, argc, argv, Processes::kDivided); }
