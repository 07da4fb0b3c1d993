#include "tosses/gradient_layers.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <limits>
#include <utility>

#include "run/text.h"
#include "tosses/step_losses.h"

namespace lcp::training {
namespace {

using torch::Tensor;

using Loss = std::function<Tensor(const Tensor&, const Segments&)>;

// The misfit of rollouts.
Loss of_rollouts(const LayerOptions& options, const identification::MotionWindows& windows,
                 const CubeContact& contact) {
  // Compliant contact has no restitution.
  const bool rebounds = contact.name != "compliant";
  std::vector<std::string> names = kJudgedParameters;
  if (!rebounds) names.erase(names.begin() + 1);
  return [=, &windows](const Tensor& raw, const Segments& some) {
    CubeModel model(options.start, contact, options.rate, names);
    model.raw = rebounds ? raw : at::cat({raw.narrow(-1, 0, 1), raw.narrow(-1, 2, 2)}, -1);
    return windows.misfits(rollouts_of(model), some);
  };
}

}  // namespace

Tensor differences(const GradientLayer& layer, double step, const Tensor& raw, const Segments& windows) {
  const c10::NoGradGuard no_grad;
  const std::int64_t count = raw.size(0), size = raw.size(1);
  const Tensor steps = step * at::eye(size, raw.options());
  const Tensor around = at::cat({steps, -steps}).unsqueeze(1) + raw;  // [2 size, b, size]
  const Tensor repeated = at::arange(count).repeat({2 * size});
  const Tensor found = layer.loss(around.flatten(0, 1), windows.at(repeated)).view({2, size, count});
  return ((found[0] - found[1]) / (2 * step)).t();
}

Tensor gradient_of(const GradientLayer& layer, const Tensor& raw, const Segments& windows) {
  Tensor gradient, loss;
  if (layer.difference > 0) {
    gradient = differences(layer, layer.difference, raw, windows);
  } else {
    const at::AutoGradMode enabled(true);
    const Tensor leaf = raw.detach().clone().requires_grad_();
    loss = layer.loss(leaf, windows);
    const Tensor solved = loss.detach().isfinite();
    gradient = torch::autograd::grad({at::where(solved, loss, 0).sum()}, {leaf})[0];
    gradient = at::where(solved.unsqueeze(-1), gradient, std::numeric_limits<double>::quiet_NaN());
  }
  return at::where(gradient.isfinite(), gradient, std::numeric_limits<double>::quiet_NaN());
}

std::vector<GradientLayer> gradient_layers(const LayerOptions& options, const identification::MotionWindows& windows) {
  const auto with = [&](const std::string& name, double kappa = 0, const char* ties = "active") {
    CubeContact contact = options.contact;
    contact.name = name;
    contact.kappa = kappa;
    contact.ties = ties;
    return of_rollouts(options, windows, contact);
  };
  const StepLoss step{options.contact.directions, options.rate, options.side};
  // The parameters of the single steps are those of the same model.
  const CubeModel model(options.start, options.contact, options.rate, kJudgedParameters);
  const std::string exact = "exact_cone", polyhedral = "polyhedral", compliant = "compliant";
  std::vector<GradientLayer> layers = {{"differences, wide", exact, with(exact), options.wide},
                                       {"differences, narrow", exact, with(exact), options.narrow},
                                       {"exact cone", exact, with(exact)}};
  const auto smoothed = [&](const std::string& label, const std::string& name, double kappa) {
    return GradientLayer{label + ", kappa " + short_number(kappa), name, with(name, kappa)};
  };
  for (const double kappa : options.kappa) layers.push_back(smoothed("exact cone", exact, kappa));
  layers.push_back({"polyhedral", polyhedral, with(polyhedral)});
  layers.push_back({"polyhedral, inactive ties", polyhedral, with(polyhedral, 0, "inactive")});
  layers.push_back({"polyhedral, midpoint ties", polyhedral, with(polyhedral, 0, "midpoint")});
  layers.push_back(smoothed("polyhedral", polyhedral, options.kappa.front()));
  layers.push_back({"compliant", compliant, with(compliant)});
  layers.push_back({"bilevel, single steps", "bilevel",
                    [=](const Tensor& raw, const Segments& some) { return step.bilevel(model.cube_at(raw), some); }});
  layers.push_back({"ContactNets style, single steps", "contact_nets", [=](const Tensor& raw, const Segments& some) {
                      return step.contact_nets(model.cube_at(raw), some);
                    }});
  return layers;
}

}  // namespace lcp::training
