// Learns the friction of a sliding block through lcp::solve, from motion alone [Notes, 3.2.3].
#include <ATen/ATen.h>
#include <torch/autograd.h>

#include "friction/train_friction_model.h"
#include "run/program.h"

namespace {

using namespace lcp::training;
using lcp::nn::TraditionalModel;
using torch::Tensor;

// The squared error of each sample. One whose LCP has no solution costs as much as a velocity that is farther from the
// observed one than rest is, so that a model without solutions is no good one.
Tensor squared_errors(const TraditionalModel& model, const Samples& samples, const Tensor& G, const Tensor& f,
                      double kappa) {
  lcp::SolveOptions options;
  options.kappa = kappa;
  const auto step = model->step(samples.v, samples.u, G, f, options);
  const Tensor observed = samples.v_next / model->velocity_unit();
  return at::where(step.status == 0, step.v_next / model->velocity_unit() - observed, 1 + observed.abs()).square();
}

// The share of the samples whose loss has gradient 0 in the friction limit f_3, since they are predicted to stick.
double zero_gradient_fraction(TraditionalModel& model, const Samples& samples, double kappa) {
  const torch::AutoGradMode grad(true);
  const Tensor G = model->G_of(samples.v, samples.u).detach();
  const Tensor f = model->f_of(samples.v, samples.u).detach().requires_grad_();
  const Tensor loss = squared_errors(model, samples, G, f, kappa).sum();
  const Tensor gradient = torch::autograd::grad({loss}, {f})[0].select(-1, 2);
  return (gradient == 0).to(torch::kDouble).mean().item<double>();
}

int train_in_the_loop(int argc, const char* const* argv) {
  CommandLine line("train_in_the_loop",
                   "Learns a sliding block of unknown friction by comparing the velocity that its LCP gives with the\n"
                   "observed one. The gradient goes through lcp::solve: it is exactly 0 for every sample that is\n"
                   "predicted to stick, so that friction that starts too large may stay there; see train_bilevel.");
  FrictionFlags flags;
  flags.model.initial_mu = 1.5;
  double kappa = 0;
  line.add("kappa", kappa,
           "Smooths the derivative but not the solution: it is that of the central path z w = kappa; 0: exact",
           nonnegative);
  const FrictionMethod method{[&](TraditionalModel& model, const Samples& batch, const Tensor& G, const Tensor& f,
                                  double) { return squared_errors(model, batch, G, f, kappa).mean(-1); },
                              "prediction", [] { return 1.0; },
                              [&](TraditionalModel& model, const Samples& training) -> NamedValues {
                                return {{"zero_gradient_fraction", zero_gradient_fraction(model, training, kappa)}};
                              },
                              [&](TraditionalModel& model, const Samples& training) -> nlohmann::json {
                                return {{"zero_gradient_fraction", zero_gradient_fraction(model, training, kappa)}};
                              }};
  return train_friction_model(line, flags, method, argc, argv);
}

}  // namespace

int main(int argc, char** argv) {
  run_program("train_in_the_loop", train_in_the_loop, argc, argv, Processes::kDivided);
}
