// Learns a cube, or a network, from recorded tosses.
#include <ATen/ATen.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lcp/identification/interval.h"
#include "lcp/physics/rotation.h"
#include "run/program.h"
#include "tosses/cube_model.h"
#include "tosses/data.h"
#include "tosses/estimate.h"
#include "tosses/flights.h"
#include "tosses/judge.h"
#include "tosses/least_lengths.h"
#include "tosses/network_model.h"
#include "tosses/windows.h"

namespace {

using namespace lcp::training;
using torch::Tensor;

// Training goes through windows of growing length: short ones, whose misfit is smoother in the parameters, lead near
// the parameters that the long ones, which are what counts, then refine. Each stage has its own step sizes, which fall
// to a tenth.
struct Stage {
  double until;      // of the iterations
  double length;     // of its windows, relative to the longest
  double step_size;  // relative to --learning-rate
};
constexpr Stage kStages[] = {{0.4, 0.25, 1}, {1, 1, 0.4}};

const Stage& stage_at(double done) {
  return *std::find_if(std::begin(kStages), std::end(kStages) - 1, [&](const Stage& s) { return done < s.until; });
}

double step_size(double first, double done) {
  const Stage& stage = stage_at(done);
  const double from = &stage == kStages ? 0 : (&stage - 1)->until;
  return stage.step_size * (0.1 * first + cosine_step_size(0.9 * first, (done - from) / (stage.until - from)));
}

// Tosses that one process rolls out at once: fewer of them take more time for each, more can be divided among fewer
// processes.
constexpr std::int64_t kTossesOfAChunk = 8;

// A model whose positions are off by more, on average over windows of 80 steps, does not explain its tosses, % of the
// side. A cube is off by 7 on recorded tosses, whose noise is far smaller, since impacts amplify what no model has
// exactly.
constexpr double kFarOff = 20;

struct Flags {
  RunFlags run;
  TrainingFlags training{.iterations = 400, .learning_rate = 0.1};
  std::string model = "cube";
  TossData tosses;
  std::filesystem::path heldout_tosses;
  std::int64_t train = 0, window = 80, batch = 64;
  CubeFlags cube;
  CubeContact contact;
  double initial_mu = 0.4, initial_side = 0.098, initial_rounding = 0.002, initial_inertia = 1.62e-3,
         initial_restitution = 0.125;
  std::vector<std::string> learned = {"mu", "restitution", "side", "center", "rounding", "inertia_axes", "tilt"};
  NetworkSize network;

  void add_to(CommandLine& line);
  void exclude_unused(const CommandLine& line) const;
  CubeFlags start() const;
};

bool learns(const std::vector<std::string>& learned, std::initializer_list<const char*> any) {
  return std::any_of(any.begin(), any.end(), [&](const char* name) {
    return std::find(learned.begin(), learned.end(), name) != learned.end();
  });
}

void Flags::add_to(CommandLine& line) {
  run.add_to(line, Precision::kFloat64);
  training.add_to(line);
  line.add("model", model, "cube, which touches the ground by the contact solver, or network, a black box",
           one_of({"cube", "network"}));
  tosses.add_to(line);
  line.add("heldout-tosses", heldout_tosses, "Folder of the tosses to judge by; without it those that --train leaves",
           nullptr, Role::kFolder);
  line.add("train", train,
           "Number of tosses to learn from, drawn by the seed; 0: all or, without "
           "--heldout-tosses, two thirds",
           at_least_zero);
  line.add("window", window, "Steps of the longest windows", at_least_two);
  line.add("batch", batch, "Tosses of a minibatch", at_least_one);
  line.add("learn", learned,
           "What is learned of the cube, of mu restitution side center (or corners, one by one) rounding inertia (or "
           "inertia_axes) height tilt and, of compliant contact, stiffness dissipation",
           [](const std::vector<std::string>& names) -> std::string {
             for (const std::string& name : names) {
               if (std::find(std::begin(kLearnable), std::end(kLearnable), name) == std::end(kLearnable)) {
                 return "names of parameters, not " + name;
               }
             }
             return names.empty() ? "at least one parameter" : "";
           });
  line.add("initial-mu", initial_mu, "Friction coefficient to begin with where it is learned", positive);
  line.add("initial-side", initial_side, "The same of the side of the cube, m", positive);
  line.add("initial-rounding", initial_rounding, "The same of the radius of its corners, m", positive);
  line.add("initial-inertia", initial_inertia, "The same of its inertia over mass, m^2", positive);
  line.add("initial-restitution", initial_restitution, "The same of the restitution, 0 to 1", from_zero_to_one);
  cube.add_to(line);
  contact.add_to(line);
  line.add("hidden-layers", network.hidden_layers, "Hidden layers of the network", at_least_one);
  line.add("hidden-units", network.hidden_units, "Units of each of them", at_least_one);
  line.footer(
      "Example: train_tosses --tosses cube_tosses --train 256 --threads 2 --out runs/cube\n"
      "The step size falls from --learning-rate to a tenth of it in the first 40 % of the iterations, for windows of "
      "a\n"
      "quarter of --window, and then from .4 to .04 of it, for whole ones.\n"
      "--side is the measured side, the unit of the errors. Simulated tosses are of a cube with all flags. What is\n"
      "learned begins at --initial-..., the centre, height and tilt at 0, stiffness and dissipation at their flags; "
      "what\n"
      "is not keeps its flag. Gravity, and drag where 20 flights or more show it, are fitted to the flights, so that "
      "a\n"
      "unit of length that is a little off shows there and does no harm elsewhere. evaluate_tosses --help says what "
      "the\n"
      "files hold.");
}

void Flags::exclude_unused(const CommandLine& line) const {
  tosses.exclude_unused(line);
  if (model == "cube") {
    line.exclude({"hidden-layers", "hidden-units"}, "--model cube");
  } else {
    line.exclude({"learn", "initial-mu", "initial-side", "initial-rounding", "initial-inertia", "initial-restitution"},
                 "--model network");
  }
  contact.exclude_unused(line);
}

CubeFlags Flags::start() const {
  CubeFlags at = cube;
  if (learns(learned, {"mu"})) at.mu = initial_mu;
  if (learns(learned, {"restitution"})) at.restitution = initial_restitution;
  if (learns(learned, {"side", "corners"})) at.side = initial_side;
  if (learns(learned, {"rounding"})) at.rounding = initial_rounding;
  if (learns(learned, {"inertia", "inertia_axes"})) at.inertia = initial_inertia;
  if (learns(learned, {"center", "corners"})) at.center = {0, 0, 0};
  if (learns(learned, {"height"})) at.height = 0;
  if (learns(learned, {"tilt"})) at.tilt_x = at.tilt_y = 0;
  return at;
}

struct Data {
  std::vector<Toss> training, heldout;
};

std::vector<Toss> those(const std::vector<Toss>& tosses, const Tensor& index) {
  std::vector<Toss> some(static_cast<std::size_t>(index.size(0)));
  std::transform(index.const_data_ptr<std::int64_t>(), index.const_data_ptr<std::int64_t>() + index.size(0),
                 some.begin(), [&](std::int64_t k) { return tosses[static_cast<std::size_t>(k)]; });
  return some;
}

Data load(const Flags& flags) {
  if (flags.tosses.folder.empty() && !flags.heldout_tosses.empty()) throw UsageError("--heldout-tosses needs --tosses");
  const std::vector<Toss> all = flags.tosses.load(flags.cube.cube(), flags.contact, flags.run.seed);
  const auto count = static_cast<std::int64_t>(all.size());
  const bool splits = flags.heldout_tosses.empty();
  const std::int64_t most = splits ? count - 1 : count;
  const std::int64_t train = flags.train > 0 ? flags.train : splits ? std::max<std::int64_t>(1, 2 * count / 3) : count;
  if (most < 1) throw UsageError("one toss leaves none to judge by: give more of them, or --heldout-tosses");
  if (train > most) {
    throw UsageError("--train must be at most " + std::to_string(most) + ", the number of tosses" +
                     (splits ? " but one to judge by" : "") + "; got " + std::to_string(train));
  }
  const Tensor order = at::randperm(count, generator(flags.run.seed, Stream::kHeldoutTosses), at::kLong);
  return {those(all, order.slice(0, 0, train)),
          splits ? those(all, order.slice(0, train)) : read_tosses(flags.heldout_tosses, flags.tosses.length)};
}

std::int64_t fingerprint_of(const Data& data) {
  std::vector<Tensor> all = tensors_of(data.training);
  for (const Tensor& x : tensors_of(data.heldout)) all.push_back(x);
  return fingerprint(all);
}

nlohmann::json to_json(const Estimate& estimate) {
  const auto finite = [](double x) { return std::isfinite(x) ? nlohmann::json(x) : nlohmann::json(); };
  return {{"value", estimate.value}, {"low", finite(estimate.low)}, {"high", finite(estimate.high)}};
}

// Moves the parameters to where the misfit of fixed windows of all tosses is least, and returns them with intervals of
// 95 %, without bounds where the tosses do not see them. Their standard deviations are the larger of those of
// minimize_lengths and of those that follow from the scatter of parameters fitted to each eighth of the tosses, where
// there are enough: the misfit has many local minima, in which a few tosses more or less end differently. The bias of
// the time steps, by a fit with half of them, is added to both sides, see lcp/identification/interval.h.
//   finer: the same model with half the steps.
nlohmann::json finish(CubeModel& model, CubeModel& finer, const Windows& windows, const Flags& flags) {
  constexpr double kStep = 0.02, kAway = 0.2, kUnseen = 5;
  constexpr std::int64_t kPerToss = 2, kIterations = 6, kParts = 8, kFewest = 4;
  const Segments all = windows.draw(at::arange(windows.tosses()), kPerToss, flags.window,
                                    generator(flags.run.seed, Stream::kWindows, flags.training.iterations));
  const auto fit = [&](CubeModel& cube, const Tensor& start, const Segments& some) {
    const auto residuals = [&](const Tensor& raw) {
      cube.raw.copy_(raw);
      return windows.residuals(cube, some);
    };
    const Tensor toss = at::arange(some.count() / kPerToss).repeat_interleave(kPerToss);
    return minimize_lengths(residuals, start, kStep, toss, kIterations);
  };
  const bool has_parts = windows.tosses() >= kParts * kFewest;
  Progress progress("fit", 0, has_parts ? kParts + 2 : 2, flags.run.quiet);
  const LeastLengths found = fit(model, model.raw.clone(), all);
  progress.show(1, "");
  // The misfit has kinks. Where no step of the finer fit makes it smaller, its next step says where the fit would end.
  const LeastLengths fine = fit(finer, found.at, all);
  const Tensor bias = 2 * (fine.at.equal(found.at) ? found.step - fine.step : found.at - fine.at);
  progress.show(2, "");
  Tensor half = half_width_95(windows.tosses(), model.raw.size(0)) * found.deviations;
  if (has_parts) {
    const auto random = generator(flags.run.seed, Stream::kWindows, flags.training.iterations + 2);
    const Tensor away = kAway * at::randn({kParts, found.at.size(0)}, random, at::kDouble);
    std::vector<Tensor> fitted;
    for (std::int64_t part = 0; part < kParts; ++part) {
      const Tensor tosses = at::arange(part, windows.tosses(), kParts).unsqueeze(1);
      const Segments some = all.at((kPerToss * tosses + at::arange(kPerToss)).flatten());
      fitted.push_back(fit(model, found.at + away[part], some).at);
      progress.show(part + 3, "");
    }
    half =
        at::maximum(half, student_95(kParts - 1) / std::sqrt(static_cast<double>(kParts)) * at::stack(fitted).std(0));
  }
  half = half + lcp::identification::kBiasSafety * bias.abs();
  model.raw.copy_(found.at);
  const Tensor value = model.values(), low = model.values_at(found.at - half), high = model.values_at(found.at + half);
  const Tensor too_large = value - model.values_at(found.at - bias);
  nlohmann::json parameters;
  for (std::size_t k = 0; k < model.names().size(); ++k) {
    const auto i = static_cast<std::int64_t>(k);
    const auto entry = [&](const Tensor& x) { return x[i].item<double>(); };
    constexpr double kNoBound = std::numeric_limits<double>::infinity();
    const bool is_seen = entry(half) <= kUnseen;
    nlohmann::json& parameter = parameters[model.names()[k]];
    parameter = to_json({entry(value), is_seen ? entry(low) : -kNoBound, is_seen ? entry(high) : kNoBound});
    parameter["time_step_bias"] = is_seen ? nlohmann::json(entry(too_large)) : nlohmann::json();
  }
  return parameters;
}

std::string intervals_text(const nlohmann::json& parameters) {
  std::string text;
  for (const auto& [name, estimate] : parameters.items()) {
    const auto number = [&](const char* key, const char* otherwise) {
      return estimate[key].is_null() ? otherwise : short_number(estimate[key].get<double>());
    };
    text += padded(name, 24) + number("value", "") + ", 95 %: " + number("low", "no bound") + " to " +
            number("high", "no bound") + ", bias of time steps " + number("time_step_bias", "not seen") + "\n";
  }
  return text;
}

// The first of the tosses, measured and predicted.
Table one_toss(const TossModel& model, const Toss& toss) {
  const Segments measured = whole_tosses({toss});
  const lcp::physics::RigidSolution predicted = model.roll_out(measured.start, measured.longest());
  Table table;
  const auto add = [&](const std::string& prefix, const Tensor& position, const Tensor& orientation) {
    const char* names[] = {"x", "y", "z", "q_w", "q_x", "q_y", "q_z"};
    const Tensor all = at::cat({position, orientation}, 1).t().contiguous();
    for (int k = 0; k < 7; ++k) {
      const double* const column = all[k].const_data_ptr<double>();
      table.add(prefix + names[k], {column, column + all.size(1)});
    }
  };
  add("measured_", measured.position.squeeze(1), measured.orientation.squeeze(1));
  add("predicted_", predicted.next.position.flatten(1), predicted.next.orientation.flatten(1));
  return table;
}

// The entry `unexplained` of metrics.json: the windows, or without any the whole tosses, are missed by more than
// kFarOff.
nlohmann::json unexplained_windows(const nlohmann::json& metrics) {
  const bool has_windows = metrics.contains("windows_80");
  const nlohmann::json& errors = metrics[has_windows ? "windows_80" : "whole"];
  const double error =
      errors["judged"] == 0 ? std::numeric_limits<double>::quiet_NaN() : errors["position_error_percent"].get<double>();
  return unexplained(has_windows ? "positions in windows of 80 steps" : "positions in whole tosses", error, kFarOff,
                     " % of the side");
}

int train_tosses(int argc, const char* const* argv) {
  CommandLine line("train_tosses",
                   "Learns friction, restitution, shape and inertia of a cube and the ground under it from recorded\n"
                   "tosses, by gradients through the contact solver; or a network from the same tosses, to compare\n"
                   "with. Judges both as evaluate_tosses does.");
  Flags flags;
  flags.add_to(line);
  if (const auto status = line.parse(argc, argv)) return *status;
  flags.exclude_unused(line);
  FolderLock lock(flags.run.out);
  const std::optional<Checkpoint> checkpoint = resume(line, lock, flags.training.resume);
  torch::set_num_threads(static_cast<int>(flags.run.threads));
  const auto begin = std::chrono::steady_clock::now();

  const Data data = load(flags);
  const Flights flights = fit_flights(data.training, flags.cube.side, flags.tosses.rate);
  const double gravity = flights.gravity.value;
  flags.tosses.check_units(gravity);

  std::shared_ptr<TossModel> model;
  std::shared_ptr<CubeModel> cube, finer_cube;
  if (flags.model == "cube") {
    CubeFlags start = flags.start();
    start.gravity = gravity;
    start.drag = flights.seen_drag();
    CubeContact finer = flags.contact;
    finer.substeps *= 2;
    model = cube = std::make_shared<CubeModel>(start.cube(), flags.contact, flags.tosses.rate, flags.learned);
    finer_cube = std::make_shared<CubeModel>(start.cube(), finer, flags.tosses.rate, flags.learned);
  } else {
    model = std::make_shared<NetworkModel>(data.training, flags.network, flags.tosses.rate, gravity, flags.run.seed);
  }
  OutputFolder out(line, flags.run, std::move(lock));
  if (!flags.run.quiet) {
    std::cout << data.training.size() << " tosses to learn from, " << data.heldout.size()
              << " to judge by; their flights have a gravity of " << short_number(gravity) << " m/s^2" << std::endl;
  }

  const Windows windows(data.training, flags.cube.side, gravity, flags.tosses.rate);
  const Windows heldout(data.heldout, flags.cube.side, gravity, flags.tosses.rate);
  const std::int64_t shown = std::min<std::int64_t>(heldout.tosses(), 32);
  const Segments heldout_windows = heldout.draw(
      at::arange(shown), 1, flags.window, generator(flags.run.seed, Stream::kWindows, flags.training.iterations + 1));
  Trainer trainer(out, flags.run, flags.training, checkpoint);
  const auto stopped = trainer.train(
      *model, windows.tosses(), flags.batch, fingerprint_of(data),
      [&](const Tensor& tosses, double done) -> LossTerms {
        const auto iteration = std::llround(done * static_cast<double>(flags.training.iterations));
        const auto steps =
            std::max<std::int64_t>(2, std::llround(stage_at(done).length * static_cast<double>(flags.window)));
        const bool reports = !at::GradMode::is_enabled();
        const Tensor some = reports ? tosses.slice(0, 0, flags.batch) : tosses;
        const Segments drawn = windows.draw(some, std::max<std::int64_t>(1, flags.window / steps), steps,
                                            generator(flags.run.seed, Stream::kWindows, iteration));
        const Tensor misfit = windows.misfit(*model, drawn);
        const std::int64_t unsolved = drawn.count() - misfit.size(0);
        return {{"loss", misfit.mean()},
                {"unsolved_windows",
                 torch::full({}, static_cast<double>(unsolved) / static_cast<double>(some.size(0)), torch::kDouble)}};
      },
      [&]() -> NamedValues {
        NamedValues values = {{"heldout_misfit", heldout.misfit(*model, heldout_windows).mean().item<double>()}};
        if (cube) {
          const Tensor now = cube->values();
          for (std::size_t k = 0; k < cube->names().size(); ++k) {
            values.emplace_back(cube->names()[k], now[static_cast<std::int64_t>(k)].item<double>());
          }
        }
        return values;
      },
      {.size = step_size, .largest_gradient = 1, .chunk = kTossesOfAChunk, .after = [&](const NamedValues& terms) {
         const auto batch = std::min(flags.batch, windows.tosses());
         model->unsolved_windows += std::llround(terms[1].second * static_cast<double>(batch));
       }});
  if (stopped) return *stopped;
  const torch::NoGradGuard no_grad;
  const auto seconds = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
  const double until_trained = seconds();
  const nlohmann::json parameters = cube ? finish(*cube, *finer_cube, windows, flags) : nlohmann::json();
  if (!ProcessGroup::current().is_first()) return 0;
  const double until_finished = seconds();
  Judgement found = judge(*model, data.heldout, flags.cube.side, gravity, flags.tosses.rate);
  nlohmann::json& metrics = found.metrics;
  metrics["unexplained"] = unexplained_windows(metrics);
  metrics["training_seconds"] = until_finished;
  metrics["interval_seconds"] = until_finished - until_trained;
  metrics["unsolved_training_windows"] = model->unsolved_windows.item<std::int64_t>();
  metrics["training_tosses"] = data.training.size();
  metrics["heldout_tosses"] = data.heldout.size();
  metrics["flights"] = {{"gravity", to_json(flights.gravity)},    {"center_x", to_json(flights.center[0])},
                        {"center_y", to_json(flights.center[1])}, {"center_z", to_json(flights.center[2])},
                        {"drag", to_json(flights.drag)},          {"tosses", flights.count}};
  if (cube) metrics["parameters"] = parameters;
  write_model(out, model->torchscript_bytes());
  out.write_csv("errors.csv", found.errors);
  out.write_csv("errors_in_time.csv", found.errors_in_time);
  out.write_csv("toss.csv", one_toss(*model, data.heldout.front()));
  if (!flags.run.quiet) std::cout << summary_text(metrics) << (cube ? intervals_text(parameters) : "");
  write_results(out, metrics, {"toss.png", "errors.png", "errors_in_time.png", "parameters.png", "training.png"});
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  lcp::training::run_program("train_tosses", train_tosses, argc, argv, Processes::kDivided);
}
