// Learns a cube, or a network, from recorded tosses.
#include <ATen/ATen.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <functional>
#include <iostream>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lcp/identification/fit_motion.h"
#include "lcp/physics/rotation.h"
#include "run/program.h"
#include "tosses/body.h"
#include "tosses/cube_model.h"
#include "tosses/data.h"
#include "tosses/estimate.h"
#include "tosses/flights.h"
#include "tosses/judge.h"
#include "tosses/network_model.h"
#include "tosses/protocols.h"

namespace {

using namespace lcp::training;
using torch::Tensor;

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
  std::filesystem::path body;
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
  void exclude_unused(const CommandLine& line);
  CubeFlags start() const;
};

// What is learned of a body of --body where --learn is not given.
const std::vector<std::string> kLearnedOfBody = {"mu", "restitution", "size", "point", "moments", "tilt"};

template <std::size_t n>
bool is_of(const char* const (&names)[n], const std::string& name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

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
  line.add("body", body, "JSON file of the body that was tossed, if it is no cube; see docs/tosses.md", nullptr,
           Role::kFile);
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
           "inertia_axes) height tilt and, of compliant contact, stiffness dissipation; of a body, of mu restitution "
           "size point moments (or inertia) centers radii (or radius) height tilt stiffness dissipation",
           [](const std::vector<std::string>& names) -> std::string {
             for (const std::string& name : names) {
               if (!is_of(kLearnable, name) && !is_of(kLearnableOfBody, name)) {
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

void Flags::exclude_unused(const CommandLine& line) {
  if (!body.empty()) {
    if (tosses.folder.empty()) throw UsageError("--body needs --tosses");
    if (learned == Flags().learned) {
      learned = kLearnedOfBody;
      if (contact.name == "compliant") std::erase(learned, "restitution");
    }
    line.exclude({std::begin(CubeFlags::kFlags), std::end(CubeFlags::kFlags)}, "--body");
    line.exclude({"initial-mu", "initial-side", "initial-rounding", "initial-inertia", "initial-restitution"},
                 "--body");
  }
  for (const std::string& name : learned) {
    const bool fits = body.empty() ? is_of(kLearnable, name) : is_of(kLearnableOfBody, name);
    if (!fits) throw UsageError("--learn: " + name + (body.empty() ? " is of --body" : " is of a cube"));
  }
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

// A model of the body of a file with what its flights tell.
std::shared_ptr<BodyModel> body_model(const TossedBody& tossed, const Flights& flights, const Flags& flags) {
  lcp::physics::RigidScene scene = tossed.scene;
  scene.dt = 1 / flags.tosses.rate;
  scene.gravity = torch::tensor({0., 0., -flights.gravity.value}, torch::kDouble);
  scene.bodies.front().drag = torch::tensor(flights.seen_drag(), torch::kDouble);
  if (flags.contact.name == "compliant" && learns(flags.learned, {"restitution"})) {
    throw UsageError("--learn: compliant contact has no restitution");
  }
  if (flags.contact.name != "compliant" && learns(flags.learned, {"stiffness", "dissipation"})) {
    throw UsageError("--learn: stiffness and dissipation are of --contact compliant");
  }
  try {
    return std::make_shared<BodyModel>(
        lcp::identification::motion_model(scene, scene_names(flags.learned), flags.contact.options()),
        flags.contact.name, flags.tosses.rate);
  } catch (const c10::Error& error) {
    throw UsageError(flags.body.string() + ": " + error.what_without_backtrace());
  }
}

// What the library fits with: the second part of lcp/identification/fit_motion.h is done by it, and the first, Adam, by
// the trainer, which writes checkpoints.
lcp::identification::FitMotionOptions fit_options(const Flags& flags) {
  lcp::identification::FitMotionOptions options;
  options.iterations = flags.training.iterations;
  options.learning_rate = flags.training.learning_rate;
  options.window = flags.window;
  options.batch = flags.batch;
  options.seed = flags.run.seed;
  options.tasks = [](std::int64_t count, const std::function<Tensor(std::int64_t)>& work) {
    constexpr const char* kFound = "found";
    const int threads = at::get_num_threads();
    const auto results = divide_tasks(count, /*threads=*/1, [&](std::int64_t k) {
      at::set_num_threads(threads);  // for this task, since there is one at a time
      return Checkpoint{{}, {{kFound, work(k)}}};
    });
    std::vector<Tensor> all;
    for (const Checkpoint& result : results) all.push_back(result.tensors.at(kFound));
    return all;
  };
  return options;
}

// Moves the parameters to where the misfit of fixed windows of all tosses is least, and returns them with intervals of
// 95 %, without bounds where the tosses do not see them, and the bias of the time steps.
nlohmann::json finish(BodyModel& model, const lcp::identification::MotionWindows& windows, const Flags& flags) {
  std::optional<Progress> progress;
  const auto show = [&](std::int64_t fits, std::int64_t of) {
    if (!progress) progress.emplace("fit", 0, of, flags.run.quiet);
    progress->show(fits, "");
  };
  const lcp::identification::MotionEstimate found = lcp::identification::estimate_motion(
      model.motion(), windows, model.raw.detach().clone(), fit_options(flags), show);
  model.raw.copy_(found.numbers);
  nlohmann::json parameters;
  for (std::size_t k = 0; k < model.names().size(); ++k) {
    const auto entry = [&](const Tensor& x) { return x[static_cast<std::int64_t>(k)].item<double>(); };
    nlohmann::json& parameter = parameters[model.names()[k]];
    parameter = to_json({entry(found.values), entry(found.low), entry(found.high)});
    const double bias = entry(found.bias);
    parameter["time_step_bias"] = std::isfinite(bias) ? nlohmann::json(bias) : nlohmann::json();
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
  add("measured_", measured.measured.position.flatten(1), measured.measured.orientation.flatten(1));
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
                     " % of the size");
}

int train_tosses(int argc, const char* const* argv) {
  CommandLine line(
      "train_tosses",
      "Learns friction, restitution, shape and inertia of a cube, or of the body of a file, and the ground\n"
      "under it from recorded tosses, by gradients through the contact solver; or a network from the\n"
      "same tosses, to compare with. Judges both as evaluate_tosses does.");
  Flags flags;
  flags.add_to(line);
  if (const auto status = line.parse(argc, argv)) return *status;
  flags.exclude_unused(line);
  FolderLock lock(flags.run.out);
  const std::optional<Checkpoint> checkpoint = resume(line, lock, flags.training.resume);
  torch::set_num_threads(static_cast<int>(flags.run.threads));
  const auto begin = std::chrono::steady_clock::now();

  std::optional<TossedBody> tossed;
  if (!flags.body.empty()) tossed = read_body(flags.body);
  const BodyForm form = tossed ? tossed->form : BodyForm(flags.cube.side);
  const Data data = load(flags);
  const Flights flights = fit_flights(data.training, form, flags.tosses.rate);
  const double gravity = flights.gravity.value;
  flags.tosses.check_units(gravity);

  std::shared_ptr<TossModel> model;
  std::shared_ptr<BodyModel> body;
  if (flags.model == "cube" && tossed) {
    model = body = body_model(*tossed, flights, flags);
  } else if (flags.model == "cube") {
    CubeFlags start = flags.start();
    start.gravity = gravity;
    start.drag = flights.seen_drag();
    model = body = std::make_shared<CubeModel>(start.cube(), flags.contact, flags.tosses.rate, flags.learned);
  } else {
    model = std::make_shared<NetworkModel>(data.training, flags.network, flags.tosses.rate, gravity, flags.run.seed);
  }
  OutputFolder out(line, flags.run, std::move(lock));
  if (!flags.run.quiet) {
    std::cout << data.training.size() << " tosses to learn from, " << data.heldout.size()
              << " to judge by; their flights have a gravity of " << short_number(gravity) << " m/s^2" << std::endl;
  }

  const auto windows = windows_of(data.training, form.size, gravity, flags.tosses.rate);
  const auto heldout = windows_of(data.heldout, form.size, gravity, flags.tosses.rate);
  const lcp::identification::FitMotionOptions options = fit_options(flags);
  const std::int64_t shown = std::min<std::int64_t>(heldout.recordings(), 32);
  const Segments heldout_windows = heldout.draw(
      at::arange(shown), 1, flags.window, generator(flags.run.seed, Stream::kWindows, flags.training.iterations + 1));
  Trainer trainer(out, flags.run, flags.training, checkpoint);
  const auto stopped = trainer.train(
      *model, windows.recordings(), flags.batch, fingerprint_of(data),
      [&](const Tensor& tosses, double done) -> LossTerms {
        const auto iteration = std::llround(done * static_cast<double>(flags.training.iterations));
        const bool reports = !at::GradMode::is_enabled();
        const Tensor some = reports ? tosses.slice(0, 0, flags.batch) : tosses;
        const Segments drawn = lcp::identification::windows_of_iteration(windows, some, options, iteration);
        const Tensor misfit = windows.misfit(rollouts_of(*model), drawn);
        const std::int64_t unsolved = drawn.count() - misfit.size(0);
        return {{"loss", misfit.mean()},
                {"unsolved_windows",
                 torch::full({}, static_cast<double>(unsolved) / static_cast<double>(some.size(0)), torch::kDouble)}};
      },
      [&]() -> NamedValues {
        NamedValues values = {
            {"heldout_misfit", heldout.misfit(rollouts_of(*model), heldout_windows).mean().item<double>()}};
        if (body) {
          const Tensor now = body->values();
          for (std::size_t k = 0; k < body->names().size(); ++k) {
            values.emplace_back(body->names()[k], now[static_cast<std::int64_t>(k)].item<double>());
          }
        }
        return values;
      },
      {.size = [&](double, double done) { return lcp::identification::motion_stage(options, done).step_size; },
       .largest_gradient = 1,
       .chunk = kTossesOfAChunk,
       .after =
           [&](const NamedValues& terms) {
             const auto batch = std::min(flags.batch, windows.recordings());
             model->unsolved_windows += std::llround(terms[1].second * static_cast<double>(batch));
           }});
  if (stopped) return *stopped;
  const torch::NoGradGuard no_grad;
  const auto seconds = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
  const double until_trained = seconds();
  const nlohmann::json parameters = body ? finish(*body, windows, flags) : nlohmann::json();
  if (!ProcessGroup::current().is_first()) return 0;
  const double until_finished = seconds();
  Judgement found = judge(*model, data.heldout, form, gravity, flags.tosses.rate);
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
  if (body) metrics["parameters"] = parameters;
  write_model(out, model->torchscript_bytes());
  out.write_csv("errors.csv", found.errors);
  out.write_csv("errors_in_time.csv", found.errors_in_time);
  out.write_csv("toss.csv", one_toss(*model, data.heldout.front()));
  if (!flags.run.quiet) std::cout << summary_text(metrics) << (body ? intervals_text(parameters) : "");
  write_results(out, metrics, {"toss.png", "errors.png", "errors_in_time.png", "parameters.png", "training.png"});
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  lcp::training::run_program("train_tosses", train_tosses, argc, argv, Processes::kDivided);
}
