// Learns a block whose contact changes at random between hidden states, with an LCP in each [Notes, 4].
#include <ATen/ATen.h>
#include <torch/autograd.h>
#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lcp/learning/markov_chain.h"
#include "lcp/physics/sliding_block.h"
#include "run/program.h"
#include "sliding_block/evaluation.h"
#include "sliding_block/samples.h"

namespace {

using namespace lcp::training;
using torch::Tensor;

// Trajectories of one length; shorter ones are filled up with steps that were not observed.
struct Sequences {
  Tensor v, u, v_next;  // [trajectories, steps]: m/s, N, m/s
  Tensor observed;      // [trajectories, steps], bool
  Tensor state;         // [trajectories, steps], int64, the hidden state; undefined for measured data

  Sequences to(torch::ScalarType dtype) const { return {v.to(dtype), u.to(dtype), v_next.to(dtype), observed, state}; }
};

// The chain that simulated data come from.
struct TrueChain {
  Tensor mu;                          // [s], friction coefficient in each state
  lcp::learning::MarkovChain states;  // begins in each state with the same probability
  double sigma;                       // m/s, standard deviation of the noise on v_next
};

TrueChain true_chain(const PhysicsFlags& block, const std::vector<double>& factors, double persistence, double sigma) {
  const auto count = static_cast<std::int64_t>(factors.size());
  const double left = count > 1 ? (1 - persistence) / static_cast<double>(count - 1) : 0;
  const Tensor stay = torch::eye(count, torch::kDouble);
  const double staying = count > 1 ? persistence : 1;
  return {block.mu * torch::tensor(factors, torch::kDouble),
          {torch::full({count}, 1 / static_cast<double>(count), torch::kDouble).log(),
           (staying * stay + left * (1 - stay)).log()},
          sigma};
}

// v_next of a block in each of the states, [..., s]: each is the solution of the LCP of a block with its mu, [s].
Tensor steps_in_states(const Tensor& v, const Tensor& u, const Tensor& mu, const PhysicsFlags& block) {
  const auto parameter = [&](double x) { return torch::full({}, x, mu.options()); };
  return lcp::physics::step(v.unsqueeze(-1), u.unsqueeze(-1),
                            {parameter(block.mass), parameter(block.dt), mu, parameter(block.gravity)},
                            lcp::physics::SlidingBlockFormulation::kTraditional)
      .step.v_next;
}

// Random trajectories of the chain under the forces u, [trajectories, steps], from velocities v, [trajectories]. Noise
// acts on the velocity itself: each step begins with v_next of the one before, noise and all.
Sequences simulate_chain(const TrueChain& chain, const Tensor& first, const Tensor& u, const PhysicsFlags& block,
                         const at::Generator& random) {
  const torch::NoGradGuard no_grad;
  std::vector<Tensor> v = {first}, states;
  v.reserve(static_cast<std::size_t>(u.size(1)) + 1);
  states.reserve(static_cast<std::size_t>(u.size(1)));
  const Tensor transition = chain.states.log_transition.exp();
  Tensor probability = chain.states.log_initial.exp().expand({first.size(0), -1});
  for (std::int64_t k = 0; k < u.size(1); ++k) {
    const Tensor state = at::multinomial(probability, 1, true, random);
    const Tensor next = steps_in_states(v.back(), u.select(1, k), chain.mu, block).gather(-1, state).squeeze(-1);
    v.push_back(next + chain.sigma * at::randn(next.sizes(), random, next.options()));
    states.push_back(state.squeeze(-1));
    probability = transition.index_select(0, state.squeeze(-1));
  }
  const Tensor all = at::stack(v, 1);
  return {all.slice(1, 0, -1), u, all.slice(1, 1), at::ones_like(u, torch::kBool), at::stack(states, 1)};
}

// Reads v,u,v_next and trajectory, whose rows are consecutive steps. One trajectory in five goes to `heldout`. Throws
// a UsageError.
std::pair<Sequences, Sequences> read_sequences(const std::string& file) {
  const Table table = read_csv(file, {"trajectory", "v", "u", "v_next"});
  const Tensor trajectory = trajectories_of(table);
  const std::int64_t count = trajectory.max().item<std::int64_t>() + 1;
  if (count < kHeldOutOneIn) {
    throw UsageError(file + ": must have at least " + std::to_string(kHeldOutOneIn) +
                     " trajectories, of which one in as many is held out; got " + std::to_string(count));
  }
  const auto padded = [&](const Tensor& x) { return by_trajectory(x, trajectory).t().contiguous(); };
  const auto column = [&](const char* name) { return padded(column_of(table, name)); };
  const Sequences all{
      column("v"), column("u"), column("v_next"), padded(torch::ones_like(trajectory, torch::kBool)), {}};
  const Tensor heldout = torch::arange(count).remainder(kHeldOutOneIn) == kHeldOutOneIn - 1;
  const auto part = [&](const Tensor& rows) -> Sequences {
    return {all.v.index({rows}), all.u.index({rows}), all.v_next.index({rows}), all.observed.index({rows}), {}};
  };
  return {part(~heldout), part(heldout)};
}

// log p of each step's v_next in each state, [trajectories, steps, s], of velocities in units of `unit` m/s.
Tensor log_observations(const Sequences& data, const Tensor& mu, const Tensor& sigma, const PhysicsFlags& block,
                        double unit) {
  const Tensor error = (data.v_next.unsqueeze(-1) - steps_in_states(data.v, data.u, mu, block)) / sigma;
  const Tensor density = -0.5 * (error.square() + std::log(2 * std::numbers::pi)) - (sigma / unit).log();
  return at::where(data.observed.unsqueeze(-1), density, at::zeros_like(density));
}

// What is learned: the friction and the transitions of the hidden states, and the size of the noise.
class BlockChain : public torch::nn::Module {
 public:
  // Random parameters. The friction coefficients are of the size that the forces, whose root mean square is
  // `force` [N], make visible.
  BlockChain(std::int64_t states, const PhysicsFlags& block, double force, const at::Generator& random);

  // log p(v_next) of each trajectory, [trajectories], of velocities in units of `unit` m/s.
  Tensor log_likelihood(const Sequences& data, double unit) const;

  Tensor mu() const { return root_mu_.square(); }    // [s]
  Tensor sigma() const { return log_sigma_.exp(); }  // m/s
  lcp::learning::MarkovChain states() const { return {initial_.log_softmax(-1), transition_.log_softmax(-1)}; }

  // The learned chain, its states in the descending order of their friction.
  TrueChain sorted() const;

 private:
  PhysicsFlags block_;
  Tensor root_mu_;     // [s]
  Tensor log_sigma_;   // []
  Tensor initial_;     // [s]
  Tensor transition_;  // [s, s]
};

BlockChain::BlockChain(std::int64_t states, const PhysicsFlags& block, double force, const at::Generator& random)
    : block_(block) {
  const double typical = force / (block.mass * block.gravity);
  const Tensor spread =
      (at::arange(states, torch::kDouble) + at::rand({states}, random, torch::kDouble)) / static_cast<double>(states);
  root_mu_ = register_parameter("root_mu", (typical * spread).sqrt());
  log_sigma_ = register_parameter("log_sigma", torch::tensor(std::log(force * block.dt / block.mass), torch::kDouble));
  initial_ = register_parameter("initial", torch::zeros({states}, torch::kDouble));
  transition_ = register_parameter("transition", at::randn({states, states}, random, torch::kDouble));
}

Tensor BlockChain::log_likelihood(const Sequences& data, double unit) const {
  return lcp::learning::log_likelihood(states(), log_observations(data, mu(), sigma(), block_, unit));
}

TrueChain BlockChain::sorted() const {
  const torch::NoGradGuard no_grad;
  const auto [mu_sorted, order] = mu().to(torch::kDouble).sort(0, /*descending=*/true);
  const lcp::learning::MarkovChain chain = states();
  return {mu_sorted,
          {chain.log_initial.to(torch::kDouble).index_select(0, order),
           chain.log_transition.to(torch::kDouble).index_select(0, order).index_select(1, order)},
          sigma().item<double>()};
}

constexpr std::int64_t kSteps = 50;            // of a simulated trajectory
constexpr std::int64_t kHeldOut = 40;          // trajectories
constexpr std::int64_t kBranchSteps = 10;      // after which the outcomes of one start are compared
constexpr std::int64_t kBranchSamples = 4000;  // outcomes
// A chain whose log likelihood of a step is less than that of one LCP by more than the first, or less than that of the
// chain that made the data by more than the second, does not explain them.
constexpr double kNegligible = 0.02, kFarOff = 0.2;

struct Flags {
  RunFlags run;
  TrainingFlags training{.iterations = 500, .learning_rate = 0.05};
  PhysicsFlags block{1, 1, 1, 1};
  std::int64_t samples = 4000;
  std::int64_t states = 3, starts = 4;
  std::vector<double> factors = {1, 0.3, 0};
  double persistence = 0.9;
  double velocity_noise = 0.02;
  std::string data;

  double unit_velocity() const { return block.dt * block.max_friction() / block.mass; }
  bool simulated() const { return data.empty(); }
  TrueChain truth() const { return true_chain(block, factors, persistence, velocity_noise * unit_velocity()); }
};

void add_flags(CommandLine& line, Flags& flags) {
  flags.run.add_to(line);
  flags.training.add_to(line);
  flags.block.add_to(line);
  line.add("states", flags.states, "Hidden states to learn", at_least_one);
  line.add("starts", flags.starts,
           "Random starts, of which the most likely is kept: the likelihood has local maxima, as where "
           "two states learn the same friction",
           at_least_one);
  line.add("samples", flags.samples, "Steps to simulate for training, in trajectories of 50", at_least_one);
  line.add("factors", flags.factors, "Friction in each state of the simulated block, over that of --mu",
           each(nonnegative, "finite numbers >= 0"));
  line.add("persistence", flags.persistence, "Probability that the simulated block stays in its state",
           [](const double& x) { return x > 0 && x < 1 ? "" : "between 0 and 1"; });
  line.add("velocity-noise", flags.velocity_noise,
           "Standard deviation of normal noise on the simulated velocities, in units of dt mu g", positive);
  line.add("data", flags.data, "CSV file to learn from instead of simulated data", nullptr, Role::kFile);
  line.footer(
      "Example: train_markov_chain --factors 1 0.2 --states 2 --out runs/two_states\n"
      "Data of your own: CSV with columns trajectory,v,u,v_next (m/s, N, m/s), whose rows are consecutive steps; "
      "one\ntrajectory in five is held out." +
      std::string(kCheckpointNote));
}

std::pair<Sequences, Sequences> load(const Flags& flags) {
  if (!flags.simulated()) return read_sequences(flags.data);
  const auto part = [&](std::int64_t count, std::int64_t k) {
    const Tensor v = random_speeds(count, flags.block, generator(flags.run.seed, Stream::kSpeeds, k));
    const Tensor u = random_forces(kSteps, count, flags.block, generator(flags.run.seed, Stream::kForces, k)).t();
    return simulate_chain(flags.truth(), v, u, flags.block, generator(flags.run.seed, Stream::kHiddenStates, k));
  };
  return {part((flags.samples + kSteps - 1) / kSteps, 0), part(kHeldOut, 1)};
}

double per_step(const Tensor& log_likelihood, const Sequences& data) {
  return (log_likelihood.sum() / data.observed.sum()).item<double>();
}

// The starts of the chain, and the best single LCP with normal noise, which is a chain of one state.
struct Models : torch::nn::Module {
  Models(const Flags& flags, double force) {
    const at::Generator random = generator(flags.run.seed, Stream::kParameters);
    const auto made = [&](const std::string& name, std::int64_t states) {
      return register_module(name, std::make_shared<BlockChain>(states, flags.block, force, random));
    };
    for (std::int64_t k = 0; k < flags.starts; ++k) chains.push_back(made("chain_" + std::to_string(k), flags.states));
    single = made("single", 1);
    to(flags.run.scalar_type());
  }
  std::vector<std::shared_ptr<BlockChain>> chains;
  std::shared_ptr<BlockChain> single;
};

// The share of the steps whose most probable state, given the whole trajectory, is the true one.
double state_accuracy(const TrueChain& chain, const Sequences& data, const Flags& flags) {
  const Tensor sigma = torch::tensor(chain.sigma, torch::kDouble);
  const Tensor log_observation =
      log_observations(data, chain.mu, sigma, flags.block, flags.unit_velocity()).requires_grad_();
  const torch::AutoGradMode grad(true);
  const Tensor total = lcp::learning::log_likelihood(chain.states, log_observation).sum();
  const Tensor probability = torch::autograd::grad({total}, {log_observation})[0];
  return (probability.argmax(-1) == data.state).to(torch::kDouble).mean().item<double>();
}

// Velocities of blocks that are pushed from rest with .6 mu m g for some steps, sorted.
Tensor outcomes(const TrueChain& chain, const Flags& flags, std::int64_t k) {
  const Tensor rest = torch::zeros({kBranchSamples}, torch::kDouble);
  const Tensor u = torch::full({kBranchSamples, kBranchSteps}, 0.6 * flags.block.max_friction(), torch::kDouble);
  const auto random = generator(flags.run.seed, Stream::kBranches, k);
  const Sequences all = simulate_chain(chain, rest, u, flags.block, random);
  return std::get<0>(all.v_next.select(1, kBranchSteps - 1).sort());
}

// What only simulated data show: the distance of the learned chain from the one that made them.
nlohmann::json compare_with_truth(OutputFolder& out, const TrueChain& learned, const TrueChain& one,
                                  const Sequences& heldout, const Flags& flags) {
  const TrueChain truth = flags.truth();
  const Tensor sigma = torch::tensor(truth.sigma, torch::kDouble);
  nlohmann::json metrics = {
      {"true_log_likelihood",
       per_step(lcp::learning::log_likelihood(
                    truth.states, log_observations(heldout, truth.mu, sigma, flags.block, flags.unit_velocity())),
                heldout)}};
  const Tensor exact = outcomes(truth, flags, 0), chain = outcomes(learned, flags, 1), single = outcomes(one, flags, 2),
               again = outcomes(truth, flags, 3);
  Table table;
  table.add("truth", entries_of(exact));
  table.add("chain", entries_of(chain));
  table.add("single", entries_of(single));
  out.write_csv("branches.csv", table);
  // The mean distance of sorted samples is the Wasserstein distance of the two distributions.
  const auto distance = [&](const Tensor& x) { return (x - exact).abs().mean().item<double>(); };
  metrics["branch_distance"] = distance(chain);
  metrics["single_branch_distance"] = distance(single);
  metrics["true_branch_distance"] = distance(again);
  if (truth.mu.sizes() == learned.mu.sizes()) {
    const Tensor order = std::get<1>(truth.mu.sort(0, /*descending=*/true));
    const Tensor transition = truth.states.log_transition.exp().index_select(0, order).index_select(1, order);
    metrics["mu_error"] = (learned.mu - truth.mu.index_select(0, order)).abs().max().item<double>();
    metrics["transition_error"] = (learned.states.log_transition.exp() - transition).abs().max().item<double>();
    Sequences sorted = heldout;
    sorted.state = order.argsort().index({heldout.state});
    metrics["state_accuracy"] = state_accuracy(learned, sorted, flags);
    metrics["true_state_accuracy"] = state_accuracy(truth, heldout, flags);
  }
  return metrics;
}

// The entry `unexplained` of metrics.json: the held-out steps are less likely by the learned chain than by a single
// LCP, or much less than by the chain that made them.
nlohmann::json unexplained_likelihood(const nlohmann::json& metrics) {
  const double learned = metrics["heldout_log_likelihood"];
  nlohmann::json lines = nlohmann::json::array();
  const auto compare = [&](const char* key, const std::string& with, double allowed) {
    if (!metrics.contains(key)) return;
    const double other = metrics[key];
    if (learned >= other - allowed) return;
    lines.push_back(std::string(kUnexplained) + ": the log likelihood of a held-out step is " + short_number(learned) +
                    ", by " + with + " " + short_number(other));
  };
  compare("single_log_likelihood", "one LCP", kNegligible);
  compare("true_log_likelihood", "the true chain", kFarOff);
  return lines;
}

int train_markov_chain(int argc, const char* const* argv) {
  CommandLine line(
      "train_markov_chain",
      "Learns a block whose contact changes at random between hidden states, such as stick, slip and\n"
      "detach. In each state v_next is the solution of the LCP of a block with a friction coefficient of\n"
      "its own, with normal noise; the states are a Markov chain. All of it is learned from motion, by the\n"
      "likelihood, and compared with the best single LCP, which predicts the mean of all branches.");
  Flags flags;
  add_flags(line, flags);
  if (const auto status = line.parse(argc, argv)) return *status;
  flags.block.require_friction();
  if (!flags.simulated()) line.exclude({"samples", "factors", "persistence", "velocity-noise"}, "--data");
  FolderLock lock(flags.run.out);
  const std::optional<Checkpoint> checkpoint = resume(line, lock, flags.training.resume);
  torch::set_num_threads(static_cast<int>(flags.run.threads));

  const auto data = load(flags);
  const Sequences &all = data.first, &heldout_double = data.second;
  const Sequences training = all.to(flags.run.scalar_type()), heldout = heldout_double.to(flags.run.scalar_type());
  OutputFolder out(line, flags.run, std::move(lock));
  Trainer trainer(out, flags.run, flags.training, checkpoint);
  Models models(flags, rmse(all.u.index({all.observed})));
  const double unit = flags.unit_velocity();
  const std::int64_t trajectories = training.v.size(0);
  const auto mean = [&](const BlockChain& model, const Sequences& part) {
    return model.log_likelihood(part, unit).sum() / part.observed.sum();
  };
  const auto best = [&]() -> const BlockChain& {
    const torch::NoGradGuard no_grad;
    std::vector<double> likelihoods;
    likelihoods.reserve(models.chains.size());
    for (const auto& chain : models.chains) likelihoods.push_back(mean(*chain, training).item<double>());
    return *models.chains[static_cast<std::size_t>(std::max_element(likelihoods.begin(), likelihoods.end()) -
                                                   likelihoods.begin())];
  };
  const auto stopped = trainer.train(
      models, trajectories, trajectories, fingerprint({all.v, all.u, all.v_next, heldout_double.v_next}),
      [&](const Tensor&, double) -> LossTerms {
        std::vector<Tensor> chains;
        chains.reserve(models.chains.size());
        for (const auto& chain : models.chains) chains.push_back(-mean(*chain, training));
        const Tensor losses = at::stack(chains), single = -mean(*models.single, training);
        return {{"loss", losses.sum() + single}, {"chain", losses.min()}, {"single", single}};
      },
      [&]() -> NamedValues {
        return {{"heldout_log_likelihood", mean(best(), heldout).item<double>()}};
      });
  if (stopped) return *stopped;

  const torch::NoGradGuard no_grad;
  const OneThread one_thread;
  const BlockChain& chain = best();
  const TrueChain learned = chain.sorted();
  nlohmann::json metrics = {{"heldout_log_likelihood", per_step(chain.log_likelihood(heldout, unit), heldout)},
                            {"single_log_likelihood", per_step(models.single->log_likelihood(heldout, unit), heldout)},
                            {"mu", to_json(learned.mu)},
                            {"transition", to_json(learned.states.log_transition.exp())},
                            {"sigma", learned.sigma},
                            {"single_mu", models.single->mu().item<double>()},
                            {"starts", flags.starts},
                            {"training_steps", training.observed.sum().item<std::int64_t>()},
                            {"final_loss", trainer.history()["loss"].back()}};
  if (flags.simulated())
    metrics.update(compare_with_truth(out, learned, models.single->sorted(), heldout_double, flags));
  metrics["unexplained"] = unexplained_likelihood(metrics);
  std::vector<std::string> figures = {"training.png"};
  if (flags.simulated()) figures.emplace_back("branches.png");
  write_results(out, metrics, figures);
  return 0;
}

}  // namespace

int main(int argc, char** argv) { run_program("train_markov_chain", train_markov_chain, argc, argv); }
