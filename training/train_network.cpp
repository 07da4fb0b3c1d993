// Learns f, G, M and q of v_next = f + G z, z = LCP(M, q), from motion alone and from random starts, and black boxes
// from the same motion to compare with.
#include <ATen/ATen.h>
#include <torch/script.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iostream>
#include <limits>
#include <utility>

#include "lcp/learning/network_search.h"
#include "network/black_box.h"
#include "network/evaluation.h"
#include "network/state.h"
#include "network/systems.h"
#include "run/program.h"
#include "sliding_block/evaluation.h"

namespace {

using namespace lcp::training;
using lcp::learning::NetworkCandidate;
using lcp::learning::NetworkRound;
using lcp::learning::NetworkSearch;
using lcp::learning::NetworkSearchOptions;
using lcp::learning::Samples;
using lcp::nn::Dependence;
using torch::Tensor;

constexpr std::int64_t kHeldOut = 2000;  // simulated steps
constexpr std::int64_t kRollouts = 20, kRolloutSteps = 200;
constexpr double kValidation = 0.2;       // of the samples
constexpr std::int64_t kFewHeldOut = 20;  // steps, of which the errors say little
// A network whose errors are at most this share of the size of the velocities explains them, whatever the noise.
constexpr double kNegligible = 0.005;

struct Flags {
  RunFlags run;
  TrainingFlags training{.iterations = 400, .learning_rate = 0.02};
  PhysicsFlags block{.mass = 0, .dt = 0, .mu = 1, .gravity = 1};  // 0: not known
  std::string system = "sliding_block", data, unknowns = "auto", f = "absent", G = "constant", q = "auto";
  std::string activation = "tanh", loss = "prediction";
  std::int64_t directions = 8, samples = 500, hidden = 8, black_box_iterations = 0;
  double velocity_noise = 0, seconds = 0;
  NetworkSearchOptions search;

  void add_to(CommandLine& line);
  void validate(const CommandLine& line);
};

Samples samples_of(const Motion& motion) { return {motion.x, motion.v_next}; }

// See NetworkProcesses.
std::vector<Tensor> divide_tensors(std::int64_t count, std::int64_t threads,
                                   const std::function<Tensor(std::int64_t)>& work) {
  constexpr const char* kName = "theta";
  const auto as_checkpoint = [&](std::int64_t k) { return Checkpoint{{}, {{kName, work(k)}}}; };
  std::vector<Tensor> results;
  for (const Checkpoint& one : divide_tasks(count, threads, as_checkpoint)) results.push_back(one.tensors.at(kName));
  return results;
}

// All that the program learns from and is judged by.
struct Data {
  MotionColumns columns;
  Motion training, validation, heldout;
  std::optional<LongMotion> rollouts;
  std::optional<MotionSystem> system;  // that was simulated
};

void Flags::add_to(CommandLine& line) {
  run.add_to(line);
  training.add_to(line);
  const std::string otherwise = "; 0: 1, or with --data not known: then step() of model.pt gives forces that are NaN";
  line.add("mass", block.mass, "Mass, kg" + otherwise, nonnegative);
  line.add("dt", block.dt, "Time step, s" + otherwise, nonnegative);
  line.add("mu", block.mu, "Friction coefficient", nonnegative);
  line.add("gravity", block.gravity, "Gravity, m/s^2", nonnegative);
  std::vector<std::string> names;
  std::string systems = "What is simulated:";
  for (const MotionSystem& known : motion_systems({1, 1, 1, 1}, directions)) {
    names.push_back(known.name);
    systems += "\n  " + known.name + ": " + known.help;
  }
  line.add("system", system, systems, one_of(names));
  line.add("directions", directions, "Friction directions of the planar block, an even number >= 4",
           [](const std::int64_t& n) { return n >= 4 && n % 2 == 0 && n <= 64 ? "" : "even, 4 to 64"; });
  line.add("samples", samples, "Simulated steps; one in five of them is for validation", at_least_two);
  line.add("velocity-noise", velocity_noise,
           "Standard deviation of normal noise on the velocities after the simulated steps, m/s", nonnegative);
  line.add("data", data, "CSV file to learn from instead of simulated data", nullptr, Role::kFile);
  line.add("unknowns", unknowns, "Number of unknowns of the LCP; auto: found by the search",
           [](const std::string& text) {
             const bool number =
                 !text.empty() && text.size() <= 2 && text.find_first_not_of("0123456789") == std::string::npos;
             return text == "auto" || (number && std::stoi(text) >= 1 && std::stoi(text) <= 16)
                        ? ""
                        : "auto, or a number from 1 to 16";
           });
  line.add("f", f,
           "The part of v_next that does not depend on the unknowns; absent: 0, so "
           "that v_next is exactly 0 where all unknowns are 0, as that of a body that rests",
           one_of({"absent", "constant", "affine", "network"}));
  line.add("G", G, "The effect of the unknowns", one_of({"constant", "affine", "network"}));
  line.add("q", q, "q of the LCP; auto: affine where that is enough, else a network",
           one_of({"auto", "affine", "network"}));
  line.add("hidden-units", hidden, "Width of the hidden layer of each part that is a network", at_least_one);
  line.add("activation", activation, "That of the hidden layers", one_of({"tanh", "relu"}));
  line.add("loss", loss,
           "What is minimised: prediction (its error, through lcp::solve, by the Levenberg-Marquardt "
           "method); or before that, in rounds that begin with random starts alone, by Adam: bilevel "
           "(the soft-constraint loss, with growing weights) or one_sided (v_next = z+ - z- with z known "
           "from the sign of v_next)",
           one_of({"prediction", "bilevel", "one_sided"}));
  line.add("rest-below", search.rest_below,
           "Velocities of at most this size, m/s, count as rest in learning; measured ones are hardly ever exactly 0",
           nonnegative);
  line.add("starts", search.starts,
           "Starts of a round; each round that repeats an earlier one has twice as many as that", at_least_one);
  line.add("kappa", search.kappa,
           "With --loss prediction: if > 0, Adam comes first here, too, with the derivative of the LCP smoothed by "
           "the central path z w = kappa, which falls to 0",
           nonnegative);
  line.add("finishing-iterations", search.finishing_iterations,
           "Iterations of the Levenberg-Marquardt method on the best starts; 0: Adam alone, which needs "
           "another --loss or --kappa",
           at_least_zero);
  line.add("coupling-penalty", search.coupling_penalty,
           "Weight of the entries of M beside its diagonal before the last iterations", nonnegative);
  line.add("rest-penalty", search.rest_penalty, "Weight of unknowns > 0 in samples that rest, see --rest-below",
           nonnegative);
  line.add("seconds", seconds,
           "The search ends after this time, and what is left of its round is skipped; 0: no limit. With a "
           "limit the result depends on the speed of the machine",
           nonnegative);
  line.add("black-box-iterations", black_box_iterations,
           "Iterations of Adam for each black box, for every --starts starts of the search; 0: 4000, and "
           "as long as all of them have taken less time than the search, again from other random starts "
           "with twice as many, so that their number depends on the speed of the machine",
           at_least_zero);
  line.footer("Example: " + line.program() + " --system stribeck --samples 300 --out runs/stribeck\n" +
              "Data of your own: CSV with columns v,v_next (m/s), or v_x,v_next_x,v_y,v_next_y and so on; inputs u or\n"
              "u_x,... (N); positions x, y, z or x_1,... (m), all of them before the step; trajectory; step, which\n"
              "counts up by 1 in each trajectory and without which the rows of a trajectory are in order. Other\n"
              "columns are not used. One trajectory in five is held out, or the last fifth of each where there are\n"
              "fewer than five, or one row in five where the file has neither trajectory nor step.\n"
              "With such data --mass and --dt only matter for the forces of step() of model.pt.\n"
              "--iterations and --learning-rate are those of Adam, for another --loss or with --kappa. Checkpoints\n"
              "are written after each round and after each group of black boxes, not by --checkpoint-every." +
              kModelNote + kCheckpointNote);
}

void Flags::validate(const CommandLine& line) {
  if (!data.empty()) {
    line.exclude({"system", "directions", "samples", "velocity-noise", "mu"}, "--data");
  } else {
    if (system != "planar_block") line.exclude({"directions"}, "--system " + system);
    for (const auto& [name, value] : {std::pair("mass", &block.mass), std::pair("dt", &block.dt)}) {
      if (*value == 0 && line.given(name)) throw UsageError("--" + std::string(name) + " must be > 0; got 0");
      if (*value == 0) *value = 1;
    }
  }
  if (loss != "prediction") line.exclude({"kappa"}, "--loss " + loss);
  if (q == "affine" && f != "network" && G != "network") {
    line.exclude({"hidden-units", "activation"}, "--q affine where neither --f nor --G is a network");
  }
  if (loss == "prediction" && search.kappa == 0) {
    line.exclude({"iterations", "learning-rate"}, "--loss prediction and --kappa 0");
    if (search.finishing_iterations == 0) {
      throw UsageError(
          "--finishing-iterations 0 leaves nothing that minimises the loss; give another --loss, or --kappa > 0");
    }
  }
  if (loss == "one_sided" && unknowns != "auto") {
    throw UsageError("--unknowns has no meaning with --loss one_sided, which needs two for each velocity at first");
  }
  if (loss == "one_sided" && (f != "absent" || G != "constant")) {
    throw UsageError("--loss one_sided needs --f absent and --G constant");
  }
  if (block.gravity == 0) throw UsageError("--gravity must be > 0: m g is the unit of force; got 0");
  if (data.empty() && block.mu == 0) throw UsageError("--mu must be > 0: mu m g is the unit of the forces; got 0");
}

LongMotion simulated_rollouts(const MotionSystem& system, std::int64_t seed) {
  const std::int64_t v = system.columns.first_velocity(), u = system.columns.first_input();
  at::Generator inputs = generator(seed, Stream::kRolloutForces);
  Tensor x = system.draw(kRollouts, generator(seed, Stream::kRolloutSpeeds));
  std::vector<Tensor> states, velocities;
  for (std::int64_t k = 0; k < kRolloutSteps; ++k) {
    x = at::cat({x.slice(1, 0, u), system.draw(kRollouts, inputs).slice(1, u)}, 1);
    const Tensor v_next = system.next(x);
    states.push_back(x);
    velocities.push_back(v_next);
    x = at::cat({v > 0 ? system.advance(x, v_next) : x.slice(1, 0, 0), v_next, x.slice(1, u)}, 1);
  }
  return {at::stack(states), at::stack(velocities), system.advance};
}

// What is known of the columns and the steps, on the error stream.
void describe(const Data& data, const MotionFile& file) {
  const MotionColumns& columns = data.columns;
  const auto joined = [](const std::vector<std::string>& names) {
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
    return text;
  };
  std::cerr << "learns " << joined(columns.next) << " from " << joined(columns.before()) << "\n";
  if (!file.unused.empty()) std::cerr << "columns that are not used: " << joined(file.unused) << "\n";
  std::cerr << "held out: " << file.heldout_rule << "\n";
  if (!data.rollouts) std::cerr << "no rollouts: the file has neither a column trajectory nor step\n";
}

Data load_data(const Flags& flags) {
  const torch::NoGradGuard no_grad;
  const OneThread one_thread;
  const std::int64_t seed = flags.run.seed;
  Data data;
  Motion known;
  MotionFile file;
  if (flags.data.empty()) {
    const auto all = motion_systems(flags.block, flags.directions);
    data.system = *std::find_if(all.begin(), all.end(), [&](const MotionSystem& s) { return s.name == flags.system; });
    const MotionSystem& system = *data.system;
    data.columns = system.columns;
    const auto simulated = [&](std::int64_t count, std::int64_t part) {
      const Tensor x = system.draw(count, generator(seed, Stream::kSpeeds, part));
      return Motion{x, system.next(x)};
    };
    known = simulated(flags.samples, 0);
    data.heldout = simulated(kHeldOut, 1);
    data.rollouts = simulated_rollouts(system, seed);
    if (flags.velocity_noise > 0) {
      known.v_next =
          known.v_next + flags.velocity_noise * torch::randn(known.v_next.sizes(),
                                                             generator(seed, Stream::kVelocityNoise), torch::kDouble);
    }
  } else {
    file = read_motion(flags.data);
    data.columns = file.columns;
    known = file.known;
    data.heldout = file.heldout;
    if (file.trajectory.defined()) data.rollouts = trajectories(file.heldout, file.trajectory);
  }
  const auto [training, validation] = lcp::learning::split_samples(samples_of(known), kValidation, seed);
  data.training = {training.x, training.y};
  data.validation = {validation.x, validation.y};
  if (flags.run.quiet) return data;
  if (!flags.data.empty()) describe(data, file);
  const auto resting = (data.training.v_next.abs() <= flags.search.rest_below).all(1).sum().item<std::int64_t>();
  std::cerr << data.training.count() << " steps to learn from, after " << resting << " of which the body rests, "
            << data.validation.count() << " for validation, " << data.heldout.count() << " held out" << std::endl;
  if (resting == 0) {
    std::cerr << "no step ends at rest: where velocities are measured, --rest-below is the size up to which "
                 "they count as rest, and networks that rest there are preferred"
              << std::endl;
  }
  if (data.heldout.count() < kFewHeldOut) {
    std::cerr << "warning: so few held-out steps say little of the errors in other states" << std::endl;
  }
  return data;
}

class Run {
 public:
  Run(const Flags& flags, const Data& data, OutputFolder& out, const std::optional<Checkpoint>& checkpoint)
      : flags_(flags),
        data_(data),
        out_(out),
        search_(samples_of(data.training), samples_of(data.validation), options(flags, data)) {
    std::vector<Tensor> all;
    for (const Motion* part : {&data.training, &data.validation, &data.heldout}) {
      all.insert(all.end(), {part->x, part->v_next});
    }
    fingerprint_ = fingerprint(all);
    if (checkpoint) {
      load(*checkpoint);
      out_.continue_earlier_run();
      say("continuing after " + std::to_string(state_.rounds.size()) + " rounds and " +
          std::to_string(state_.black_boxes.trained.size()) + " black boxes");
      return;
    }
    if (flags.training.resume) {
      say("no checkpoint in " + out_.path().string() + ": starting at the beginning");
    } else if (out_.has_earlier_run()) {
      say("replacing the run in " + out_.path().string() + "; --resume would have continued it");
    }
    save();
  }

  /// Returns an exit status where a signal ended it.
  std::optional<int> compute() {
    const Interrupt interrupt;
    const auto stopped = [&] { return interrupt.signal() != 0; };
    search(stopped);
    const auto signal = [&] { return static_cast<int>(processes_.largest(interrupt.signal())); };
    if (signal() == 0) train_black_boxes(stopped);
    const int received = signal();
    if (received == 0) return std::nullopt;
    save();
    say("stopped; to continue: " + resume_command(out_.path().string()));
    return 128 + received;
  }

  void report();

 private:
  static NetworkSearchOptions options(const Flags& flags, const Data& data) {
    NetworkSearchOptions options = flags.search;
    options.parts.inputs(data.training.x.size(1)).outputs(data.training.v_next.size(1));
    options.parts.f(lcp::nn::dependence_named(flags.f, "f"))
        .G(lcp::nn::dependence_named(flags.G, "G"))
        .hidden(flags.hidden)
        .activation(lcp::nn::activation_named(flags.activation));
    options.loss = lcp::learning::network_loss_named(flags.loss);
    options.affine = flags.q != "network";
    options.network = flags.q != "affine";
    options.unknowns = flags.unknowns == "auto" ? 0 : std::stoi(flags.unknowns);
    options.iterations = flags.training.iterations;
    options.learning_rate = flags.training.learning_rate;
    options.first_velocity = data.columns.first_velocity();
    options.seed = flags.run.seed;
    options.threads = flags.run.threads;
    options.processes = {divide_tensors, [](bool here) { return ProcessGroup::current().largest(here ? 1 : 0) != 0; }};
    return options;
  }

  void say(const std::string& text) const {
    if (!flags_.run.quiet) std::cerr << text << std::endl;
  }

  void load(const Checkpoint& checkpoint);
  void save() const;
  void search(const std::function<bool()>& stopped);
  void train_black_boxes(const std::function<bool()>& stopped);
  bool out_of_time() const { return flags_.seconds > 0 && state_.search_seconds >= flags_.seconds; }
  double metres_per_second(double relative) const { return relative * unit_; }
  // of all rounds
  std::int64_t starts() const {
    std::int64_t sum = 0;
    for (const NetworkRound& round : state_.rounds) sum += round.starts;
    return sum;
  }

  const Flags& flags_;
  const Data& data_;
  OutputFolder& out_;
  ProcessGroup& processes_ = ProcessGroup::current();
  NetworkSearch search_;
  NetworkState state_;
  std::int64_t fingerprint_ = 0;
  const double unit_ = search_.output_unit().square().mean().sqrt().item<double>();  // m/s
};

void Run::load(const Checkpoint& checkpoint) {
  checkpoint.require_data(fingerprint_, out_ / "checkpoint.pt");
  try {
    state_ = NetworkState::load(checkpoint, options(flags_, data_).parts);
  } catch (const std::exception&) {
    refuse_checkpoint(out_ / "checkpoint.pt");
  }
  search_.restore(state_.rounds);
}

void Run::save() const {
  if (!processes_.is_first()) return;
  const std::size_t parts = state_.rounds.size() + state_.black_boxes.trained.size();  // that are done
  Checkpoint checkpoint{{{"config", out_.flags()}, {"iteration", parts}, {"data", fingerprint_}}, {}};
  state_.save(checkpoint);
  out_.write("checkpoint.pt", checkpoint.encode());
  if (state_.rounds.empty()) return;
  Table history;
  for (const char* name :
       {"round", "unknowns", "q_is_network", "training_rmse", "validation_rmse", "resting", "starts"}) {
    history.add(name, {});
  }
  for (std::size_t k = 0; k < state_.rounds.size(); ++k) {
    const NetworkCandidate& best = state_.rounds[k].best.front();
    history.add_row({static_cast<double>(k), static_cast<double>(best.options.unknowns()),
                     best.options.q() == Dependence::kNetwork ? 1. : 0., metres_per_second(best.training_error),
                     metres_per_second(best.validation_error), best.rest,
                     static_cast<double>(state_.rounds[k].starts)});
  }
  out_.write_csv("history.csv", history);
}

void Run::search(const std::function<bool()>& stopped) {
  Progress progress("round", static_cast<std::int64_t>(state_.rounds.size()), search_.most_rounds(), flags_.run.quiet);
  std::string shown;
  const auto show = [&] {
    if (state_.rounds.empty()) return;
    const NetworkCandidate& best = state_.rounds.back().best.front();
    shown = std::to_string(best.options.unknowns()) + " unknowns" +
            (best.options.q() == Dependence::kNetwork ? ", q a network" : "") + ": validation rmse " +
            short_number(metres_per_second(best.validation_error)) + " m/s";
  };
  const auto all_stopped = [&] { return processes_.largest(stopped() ? 1 : 0) != 0; };
  while (!search_.finished() && !all_stopped()) {
    if (out_of_time() && !state_.rounds.empty()) return;
    const auto start = std::chrono::steady_clock::now();
    const auto seconds = [&] {
      return state_.search_seconds + std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    };
    search_.advance(
        stopped,
        [&](double done) {
          progress.show(static_cast<std::int64_t>(state_.rounds.size()),
                        (shown.empty() ? "" : shown + "; ") +
                            "next round: " + std::to_string(static_cast<int>(100 * done)) + " %");
        },
        [&] { return flags_.seconds > 0 && seconds() >= flags_.seconds; });
    if (search_.rounds().size() == state_.rounds.size()) return;  // it was stopped
    state_.search_seconds = processes_.of_first(seconds());
    state_.rounds = search_.rounds();
    save();
    show();
    progress.show(static_cast<std::int64_t>(state_.rounds.size()), shown);
  }
}

void Run::train_black_boxes(const std::function<bool()>& stopped) {
  PassOptions options{.threads = flags_.run.threads, .quiet = flags_.run.quiet};
  if (flags_.black_box_iterations > 0) {
    options.iterations = flags_.black_box_iterations;
  } else {
    options.seconds = state_.search_seconds;
  }
  options.iterations *= std::max<std::int64_t>(1, starts() / flags_.search.starts);
  const auto train = [&](std::int64_t number, std::int64_t iterations) {
    return best_of_family(number, data_.training, data_.validation, search_.input_unit(), search_.output_unit(),
                          {.iterations = iterations, .seed = flags_.run.seed}, stopped);
  };
  train_in_passes(
      state_.black_boxes, options, train, [&] { save(); }, stopped);
}

void Run::report() {
  const torch::NoGradGuard no_grad;
  const OneThread one_thread;
  const Samples samples = search_.all();
  const NetworkCandidate chosen = search_.best(), best = search_.simplified(chosen, samples);
  lcp::nn::LcpNetwork network = search_.network(best.options);
  network->set_theta(best.theta);
  network->to(flags_.run.scalar_type());
  const auto positions = static_cast<std::int64_t>(data_.columns.positions.size());
  const auto inputs = static_cast<std::int64_t>(data_.columns.inputs.size());
  const auto known_or_nan = [](double x) { return x > 0 ? x : std::numeric_limits<double>::quiet_NaN(); };
  write_model(out_, lcp::nn::torchscript_bytes(network, {positions, inputs, known_or_nan(flags_.block.dt),
                                                         known_or_nan(flags_.block.mass), flags_.block.gravity}));
  torch::jit::Module model = torch::jit::load((out_ / "model.pt").string());
  const std::int64_t d = data_.heldout.v_next.size(1), first_u = data_.columns.first_input();
  const Predictor predict = [&](const Tensor& x) {
    const auto group = [&](std::int64_t first, std::int64_t count) {
      return count == 1 ? x.select(-1, first) : x.slice(-1, first, first + count);
    };
    torch::jit::Stack arguments = {group(positions, d), group(first_u, inputs)};
    if (positions > 0) arguments.emplace_back(group(0, positions));
    const Tensor v_next = model.forward(arguments).toTensor().to(torch::kDouble);
    return d == 1 ? v_next.unsqueeze(-1) : v_next;
  };
  const BlackBox& box = state_.black_boxes.best();
  const Predictor predict_by_box = [&](const Tensor& x) { return box.predict(x); };

  const Motion& heldout = data_.heldout;
  const Tensor predicted = predict(heldout.x), by_box = predict_by_box(heldout.x);
  const double close = 1e-3 * unit_;
  // The noise of a file is not known; the error of the best plain network is an upper estimate of it.
  const double noise = data_.system ? flags_.velocity_noise : rmse(by_box - heldout.v_next);
  const double allowed = 1.5 * noise + kNegligible * unit_;
  std::int64_t unsolved = predicted.isnan().any(-1).sum().item<std::int64_t>();
  nlohmann::json metrics = {
      {"heldout_rmse", rmse(predicted - heldout.v_next)},
      {"unexplained", unexplained("held-out velocities", rmse(predicted - heldout.v_next), allowed, " m/s")},
      {"black_box_heldout_rmse", rmse(by_box - heldout.v_next)},
      {"black_box", box.name},
      {"sticking_exact_zero_fraction", resting_fraction(predicted, heldout.v_next, 0)},
      {"sticking_close_fraction", resting_fraction(predicted, heldout.v_next, close)},
      {"sticking_tolerance", close},
      {"black_box_sticking_close_fraction", resting_fraction(by_box, heldout.v_next, close)},
      {"heldout_samples", heldout.count()},
      {"from_truth_heldout_rmse", nullptr},
      {"true_model_heldout_rmse", nullptr},
      {"heldout_sticking_fraction", (heldout.v_next == 0).all(-1).to(torch::kDouble).mean().item<double>()},
      {"rollout_rmse", nullptr},
      {"black_box_rollout_rmse", nullptr},
      {"perturbed_rollout_rmse", nullptr},
      {"training_samples", data_.training.count()},
      {"validation_samples", data_.validation.count()},
      {"validation_rmse", metres_per_second(best.validation_error)},
      {"disagreement_fraction", nullptr},
      {"unknowns", best.options.unknowns()},
      {"q", best.options.q() == Dependence::kNetwork ? "network" : "affine"},
      {"network_parameters", network->size()},
      {"odd", best.odd},
      {"inertial", best.inertial},
      {"starts", starts()},
      {"rounds", state_.rounds.size()},
      {"stopped_by_time", out_of_time()}};
  if (const auto share = search_.disagreement(chosen)) metrics["disagreement_fraction"] = *share;
  if (data_.system) {
    const MotionSystem& system = *data_.system;
    metrics["true_model_heldout_rmse"] =
        rmse(system.model(heldout.x, fitted_factors(system, {samples.x, samples.y})) - heldout.v_next);
    if (flags_.velocity_noise > 0 && flags_.search.finishing_iterations > 0) {
      // The same network, but fitted to motion without noise before it is fitted to the samples.
      const NetworkCandidate truth = search_.refitted(best, {samples.x, system.next(samples.x)});
      const Tensor y = search_.network(best.options)->step(heldout.x, search_.refitted(truth, samples).theta).y;
      metrics["from_truth_heldout_rmse"] = rmse(y - heldout.v_next);
    }
  }
  std::vector<std::string> figures = {"search.png"};
  if (data_.rollouts) {
    const LongMotion& truth = *data_.rollouts;
    const Tensor learned = roll_out(predict, truth, data_.columns),
                 boxed = roll_out(predict_by_box, truth, data_.columns);
    const Tensor known = truth.v_next.isfinite();
    const auto error = [&](const Tensor& v) { return rmse((v - truth.v_next).index({known})); };
    metrics["rollout_rmse"] = error(learned);
    metrics["black_box_rollout_rmse"] = error(boxed);
    if (data_.system) {
      // Where this is large, motion amplifies small differences, and no network could predict it better.
      at::Generator numbers = generator(flags_.run.seed, Stream::kVelocityNoise, 1);
      const double size = metrics["heldout_rmse"];
      const Predictor perturbed = [&](const Tensor& x) {
        const Tensor v_next = data_.system->next(x);
        return at::where(v_next == 0, 0, v_next + size * torch::randn(v_next.sizes(), numbers, torch::kDouble));
      };
      metrics["perturbed_rollout_rmse"] = error(roll_out(perturbed, truth, data_.columns));
    }
    unsolved += (learned.isnan() & truth.v_next.isfinite()).any(-1).sum().item<std::int64_t>();
    out_.write_csv("rollouts.csv", rollout_table(truth, learned, boxed, data_.columns));
    figures.insert(figures.begin(), "rollout.png");
  }
  metrics["unsolved"] = unsolved;
  for (const auto& [family, one] : state_.black_boxes.trained) {
    metrics["black_boxes"].push_back({{"name", one.name},
                                      {"validation_rmse", metres_per_second(one.validation_error)},
                                      {"heldout_rmse", rmse(one.predict(heldout.x) - heldout.v_next)}});
  }
  out_.write_json("times.json",
                  {{"search_seconds", state_.search_seconds}, {"black_box_seconds", state_.black_boxes.seconds}});
  write_results(out_, metrics, figures);
  if (const auto& share = metrics["disagreement_fraction"]; share.is_number() && share > 0) {
    say("other networks fit the samples as well and differ in " + short_number(100 * share.get<double>()) +
        " % of random states: more samples would tell which is right");
  }
  if (metrics["black_box_heldout_rmse"] < metrics["heldout_rmse"]) {
    say("the best black box, " + box.name + ", predicts the held-out steps better than the network");
  }
  if (flags_.block.mass == 0 || flags_.block.dt == 0) {
    say("step() of model.pt gives no forces, since --mass and --dt are not both given");
  }
}

int train_network(int argc, const char* const* argv) {
  CommandLine line(
      "train_network",
      "Learns v_next = f + G z, where z solves the LCP 0 <= z perp M z + q >= 0, from motion alone: from\n"
      "states, inputs and the velocities after a step. f, G, M and q start at random, many times at once,\n"
      "and the search finds the number of unknowns. Affine maps and plain networks learn from the same\n"
      "samples, to compare with.");
  Flags flags;
  flags.add_to(line);
  if (const auto status = line.parse(argc, argv)) return *status;
  flags.validate(line);
  FolderLock lock(flags.run.out);
  const std::optional<Checkpoint> checkpoint = resume(line, lock, flags.training.resume);
  torch::set_num_threads(static_cast<int>(flags.run.threads));
  const Data data = load_data(flags);
  OutputFolder out(line, flags.run, std::move(lock));
  Run run(flags, data, out, checkpoint);
  if (const auto status = run.compute()) return *status;
  if (ProcessGroup::current().is_first()) run.report();
  return 0;
}

}  // namespace

int main(int argc, char** argv) { run_program("train_network", train_network, argc, argv, Processes::kDivided); }
