#include "sliding_block/friction_model.h"

#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>

#include "run/program.h"
#include "sliding_block/evaluation.h"

namespace lcp::training {
namespace {

using nn::Parameters;
using torch::Tensor;

struct HeldSet {
  const char* name;
  std::vector<std::int64_t> entries;  // indices of entries of [M|W], counted row by row
};

const std::vector<HeldSet>& all_held_sets() {
  static const std::vector<HeldSet> all = {
      {"one_per_row", {2, 8, 12}},
      {"cone", {2, 8, 12, 14}},
      {"none", {}},
      {"first", {0}},
      {"diagonal", {0, 7, 12}},
      {"two_two_one", {0, 1, 6, 7, 12}},
      {"three_two_one", {0, 1, 2, 7, 8, 12}},
      {"upper_triangle", {0, 1, 2, 7, 8, 14}},
      {"matrix", {0, 1, 2, 6, 7, 8, 12, 13, 14}},
      {"vector", {3, 4, 5, 9, 10, 11, 15, 16, 17}},
  };
  return all;
}

std::string entry_name(std::int64_t row, std::int64_t column) {
  return (column < 3 ? "M" : "W") + std::to_string(row + 1) + std::to_string(column % 3 + 1);
}

constexpr struct {
  const char* name;
  Parameters parameters;
} kParameters[] = {{"mu", Parameters::kFriction},
                   {"rows", Parameters::kRows},
                   {"structured", Parameters::kStructured},
                   {"networks", Parameters::kNetworks}};

}  // namespace

Tensor states(const nn::TraditionalModel& model, const Samples& samples) {
  const Tensor v = samples.v / model->velocity_unit();
  return torch::stack({v, samples.u / model->options.force_unit(), torch::ones_like(v)}, -1);
}

Tensor solutions(const nn::TraditionalModel& model, const Samples& samples) {
  return torch::cat(
      {samples.lambda / model->options.force_unit(), (samples.gamma / model->velocity_unit()).unsqueeze(-1)}, -1);
}

Tensor held_entries(const std::string& name) {
  Tensor mask = torch::zeros({18}, torch::kBool);
  for (const HeldSet& held : all_held_sets()) {
    if (name == held.name) {
      for (const std::int64_t k : held.entries) mask[k] = true;
    }
  }
  return mask.view({3, 6});
}

Tensor with_monotone(const Tensor& held) {
  Tensor all = held.clone();
  for (const std::int64_t k : {0, 1}) all[2][k] = all[k][2] = held[2][k] | held[k][2];
  all[2][2] = true;
  return all;
}

LearnedLcp learned_lcp(const nn::TraditionalModel& model, double penalty) {
  const auto split = [](const Tensor& numbers) {
    return std::pair(numbers.slice(-1, 0, 9).unflatten(-1, {3, 3}), numbers.slice(-1, 9));
  };
  LearnedLcp lcp;
  lcp.unit = model->velocity_unit();
  lcp.numbers = [model](const Samples& samples, const Tensor& theta) {
    const Tensor f = model->f_of(samples.v, samples.u, theta);
    const Tensor limited = at::cat({f.slice(-1, 0, 2), f.slice(-1, 2).clamp_min(0)}, -1);
    const Tensor G = model->G_of(samples.v, samples.u, theta).flatten(-2);
    return at::cat({G + at::zeros_like(f.slice(-1, 0, 1)), limited}, -1);
  };
  lcp.step = [model, split](const Samples& samples, const Tensor& numbers) {
    const auto [G, f] = split(numbers);
    return model->step(samples.v, samples.u, G, f).v_next;
  };
  lcp.missed = [model, split](const Tensor& numbers) {
    const Tensor held = model->held.slice(1, 0, 3).flatten().nonzero().squeeze(-1);
    return model->missed(split(numbers).first).index_select(-1, held);
  };
  lcp.penalties = [model, penalty](const Tensor& theta) { return std::sqrt(penalty) * model->nonlinear(theta); };
  return lcp;
}

std::vector<std::string> held_names() { return names_of(all_held_sets()); }

double row_error(const Tensor& rows, double limit) {
  return (rows.detach().to(torch::kDouble) - nn::TraditionalModelImpl::true_rows(limit)).abs().max().item<double>();
}

Tensor canonical_rows(const Tensor& given, bool motion_only) {
  Tensor rows = given.detach().to(torch::kDouble).clone();
  const Tensor size = torch::stack({rows[0][2], rows[1][2], (rows[2][0] + rows[2][1]) / -2}).unsqueeze(-1);
  rows = torch::where(size > 0, rows / size, rows);
  if (motion_only) {
    const Tensor difference = (rows[0].slice(0, 3) - rows[1].slice(0, 3)) / 2;
    rows[0].slice(0, 3) = difference;
    rows[1].slice(0, 3) = -difference;
  }
  return rows;
}

void fit_dynamics(nn::TraditionalModel& model, const Samples& samples) {
  const torch::NoGradGuard no_grad;
  const OneThread one_thread;
  const Tensor features = torch::cat({states(model, samples), solutions(model, samples)}, -1);
  const Tensor left = samples.v_next / model->velocity_unit() - (features * model->dynamics).sum(-1);
  model->dynamics += std::get<0>(torch::linalg_lstsq(features, left.unsqueeze(-1), 1e-10, "gelsd")).squeeze(-1);
}

IdentifiabilityReport rows_identifiability(const nn::TraditionalModel& model, const Samples& samples) {
  const Tensor z = solutions(model, samples), state = states(model, samples);
  // The last six are those of the slopes of M, which only a model with affine_matrix has.
  const Tensor by_state = (z.unsqueeze(-1) * state.slice(-1, 0, 2).unsqueeze(-2)).flatten(-2);
  const Tensor features = torch::cat({z, state, by_state}, -1);
  IdentifiabilityReport report;
  for (std::int64_t row = 0; row < 3; ++row) {
    std::vector<std::int64_t> free;
    std::vector<std::string> names;
    for (std::int64_t column = 0; column < 6; ++column) {
      if (model->held[row][column].item<bool>()) continue;
      free.push_back(column);
      names.push_back(entry_name(row, column));
      if (column >= 3 || !model->options.affine_matrix()) continue;
      for (const std::int64_t by : {0, 1}) {
        free.push_back(6 + 2 * column + by);
        names.push_back(names[names.size() - static_cast<std::size_t>(by) - 1] + (by == 0 ? " v" : " u"));
      }
    }
    const Tensor active = (z.select(-1, row) > 0).nonzero().squeeze(-1);
    report.add(features.index_select(0, active).index_select(1, torch::tensor(free, torch::kLong)), names);
  }
  return report;
}

IdentifiabilityReport motion_identifiability(nn::TraditionalModel& model, const Samples& samples) {
  const Samples some = samples.at(torch::arange(std::min<std::int64_t>(samples.count(), 256)));
  const auto step = model->step(some.v, some.u);
  const Tensor solved = (step.status == 0).nonzero().squeeze(-1);
  Tensor J = jacobian((step.v_next / model->velocity_unit()).index_select(0, solved), model->parameters());
  std::vector<std::string> names = parameter_names(*model);
  std::vector<std::int64_t> kept;
  std::int64_t first = 0;
  for (const auto& parameter : model->named_parameters()) {
    const std::int64_t count = parameter.value().numel();
    const bool rows = parameter.key() == "learned";
    const std::int64_t columns = rows ? parameter.value().size(1) : 0;
    for (std::int64_t k = 0; k < count; ++k) {
      if (rows) {
        const std::int64_t row = k / columns, column = k % columns + 6 - columns;
        if (model->held[row][column].item<bool>()) continue;
        names[static_cast<std::size_t>(first + k)] = entry_name(row, column);
      }
      kept.push_back(first + k);
    }
    first += count;
  }
  std::vector<std::string> kept_names(kept.size());
  std::transform(kept.begin(), kept.end(), kept_names.begin(),
                 [&](std::int64_t k) { return names[static_cast<std::size_t>(k)]; });
  IdentifiabilityReport report;
  report.add(J.index_select(1, torch::tensor(kept, torch::kLong)), kept_names);
  return report;
}

void add_matrix_flag(CommandLine& line, std::string& matrix, bool may_be_affine) {
  std::vector<std::string> kinds = {kMonotone, "free"};
  if (may_be_affine) kinds.emplace_back(kAffine);
  line.add("matrix", matrix,
           "M is monotone (M33 = 0, M13 = -M31, M23 = -M32, M11 and M22 >= |M12 + M21| / 2), so that each "
           "LCP that is feasible has a solution, or free, as in the notes" +
               std::string(may_be_affine ? ", or affine: free, and each entry affine in v and u" : ""),
           one_of(kinds));
}

void FrictionModelFlags::add_to(CommandLine& line) {
  line.add("parameters", parameters,
           "What is learned: mu; rows ([M|W], M13 = M23 = 1, M31 = -1, M33 = 0 held); structured (M = phi "
           "phi' + antisymmetric, and "
           "W); networks (the same with phi, beta and f networks of v and u)",
           one_of(names_of(kParameters)));
  line.add("initial-mu", initial_mu, "Friction coefficient to start from", positive);
  line.add("start-noise", start_noise,
           "Standard deviation of the initial parameters other than mu about those of a block with the initial mu",
           nonnegative);
  start.add_to(line, "block (a block with --initial-mu), ");
  line.add("nonlinearity", nonlinearity,
           "Weight of the penalty on the networks' dependence on v and u, except an affine one of f", nonnegative);
  line.add("hidden-units", hidden_units, "Width of the tanh layers of networks; 0: affine", at_least_zero);
  line.add_switch("exact-rest", exact_rest, kExactRestHelp);
}

void FrictionModelFlags::validate(const CommandLine& line) {
  if (start.start != "block") line.exclude({"initial-mu", "start-noise"}, "--start " + start.start);
  if (start.file()) line.exclude({"starts"}, "--start " + start.start);
  start.validate("block");
  if (start.start == "block" && parameters == "mu" && start.starts == 0) start.starts = 1;
}

std::pair<nn::TraditionalModel, Tensor> FrictionModelFlags::make(const RunFlags& run, const PhysicsFlags& block,
                                                                 const Samples& samples) const {
  Parameters kind = Parameters::kFriction;
  for (const auto& known : kParameters) {
    if (parameters == known.name) kind = known.parameters;
  }
  torch::manual_seed(generator(run.seed, Stream::kParameters).current_seed());
  double unit = block.mass * block.gravity;
  // Random parameters are of size 1 in units in which the observed friction is.
  const double friction = rmse(block.mass * (samples.v_next - samples.v) / block.dt - samples.u);
  if (start.random() && friction > 0) unit = friction;
  if (start.file()) unit = number_in(start.start, "force_unit");
  nn::TraditionalModel model(nn::TraditionalModelOptions()
                                 .mass(block.mass)
                                 .dt(block.dt)
                                 .gravity(block.gravity)
                                 .force_unit(unit)
                                 .parameters(kind)
                                 .monotone(true)
                                 .hidden(hidden_units));
  model->to(run.scalar_type());
  if (kind != Parameters::kFriction) {
    // The models of the other kinds are monotone whatever their parameters are.
    Tensor held = held_entries("one_per_row");
    if (kind == Parameters::kRows) held = with_monotone(held);
    model->hold(held, nn::TraditionalModelImpl::true_rows(0));
  }
  if (start.random()) {
    return {model, model->random(start.count(), generator(run.seed, Stream::kStarts)).to(run.scalar_type())};
  }
  const torch::NoGradGuard no_grad;
  std::vector<Tensor> theta;
  for (std::int64_t k = 0; k < start.count(); ++k) {
    if (start.file()) {
      start.load([&] { nn::load_torchscript(model, start.start); });
    } else {
      model->start(initial_mu, start_noise);
    }
    theta.push_back(model->theta());
  }
  return {model, at::stack(theta)};
}

nlohmann::json sticking_metrics(nn::TraditionalModel& model, const Samples& heldout) {
  const torch::NoGradGuard no_grad;
  const auto step = model->step(heldout.v, heldout.u);
  const Tensor rests = heldout.v_next == 0;
  nlohmann::json metrics;
  const auto add = [&](const std::string& detector, const Tensor& found) {
    const auto fraction = [&](const Tensor& of) { return found.index({of}).to(torch::kDouble).mean().item<double>(); };
    metrics["sticking_found_by_" + detector] = fraction(rests);
    metrics["sliding_mistaken_by_" + detector] = fraction(~rests);
  };
  add("gamma", step.gamma == 0);
  add("active_set", nn::TraditionalModelImpl::sticks(step.lambda, step.gamma));
  return metrics;
}

nlohmann::json friction_metrics(nn::TraditionalModel& model, const PhysicsFlags& block) {
  if (model->options.parameters() == Parameters::kNetworks) return {{"mu", nullptr}, {"parameter_error", nullptr}};
  const double mass_gravity = block.mass * block.gravity, unit = model->options.force_unit();
  const double limit = block.mu * mass_gravity / unit;
  const Tensor rows = model->rows().detach().to(torch::kDouble);
  const double mu = (-2 * rows[2][5] / (rows[2][0] + rows[2][1])).item<double>() * unit / mass_gravity;
  return {{"mu", mu}, {"parameter_error", row_error(canonical_rows(rows, true), limit)}};
}

}  // namespace lcp::training
