// Asks layers of contact for the same gradient on measured tosses, and compares their answers.
#include <ATen/ATen.h>
#include <torch/optim/adam.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iostream>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "run/program.h"
#include "tosses/data.h"
#include "tosses/flights.h"
#include "tosses/gradient_layers.h"

namespace {

using namespace lcp::training;
using torch::Tensor;

struct Flags {
  RunFlags run;
  TossData tosses;
  CubeFlags cube;
  CubeContact contact;
  double initial_mu = 0.4, initial_side = 0.098, initial_inertia = 1.62e-3;
  std::int64_t short_window = 4, window = 20, training_window = 4, windows = 48, points = 3;
  std::int64_t starts = 20, iterations = 60, batch = 8;
  double learning_rate = 0.1, wide = 0.05, narrow = 1e-6;
  std::vector<double> kappa = {1e-4, 1e-2};
  bool resume = false;

  void add_to(CommandLine& line);
};

void Flags::add_to(CommandLine& line) {
  run.add_to(line, Precision::kFloat64);
  tosses.add_to(line);
  line.add("short-window", short_window, "Steps of the short windows", at_least_one);
  line.add("window", window, "Steps of the long windows, which also judge where training ends", at_least_one);
  line.add("training-window", training_window, "Steps of the windows that training learns from", at_least_one);
  line.add("windows", windows, "Windows of each length that the gradients are asked on", at_least_one);
  line.add("points", points,
           "Random values of the parameters at which they are asked, beside those near the flags of the "
           "cube and those of the far start",
           at_least_zero);
  line.add("wide-step", wide, "Step of the differences that are the reference, of raw numbers", positive);
  line.add("narrow-step", narrow, "Step of the narrow differences", positive);
  line.add("kappa", kappa, "Smoothings, J for 1 kg, the first also of polyhedral contact",
           each(positive, "finite numbers > 0"));
  line.add("starts", starts, "Random starts of the trainings by each layer", at_least_one);
  line.add("iterations", iterations, "Iterations of Adam", at_least_zero);
  line.add("batch", batch, "Windows of an iteration", at_least_one);
  line.add("learning-rate", learning_rate, "Step size of Adam to begin with; it falls along a cosine", positive);
  line.add("initial-mu", initial_mu, "Friction coefficient of the far start", positive);
  line.add("initial-side", initial_side, "Side of the cube there, m", positive);
  line.add("initial-inertia", initial_inertia, "Inertia over mass there, m^2", positive);
  cube.add_to(line);
  contact.add_numbers_to(line);
  add_resume_flag(line, resume);
  line.footer(
      "Example: judge_gradients --tosses cube_tosses --threads 2 --out runs/gradients\n"
      "The parameters are mu, restitution, side and inertia. Raw numbers stand for them, in which a step of .1 is\n"
      "small: the logarithms of mu and of inertia, that of side times 10, and the logit of restitution, all 0 at the\n"
      "far start. Random values, and the random starts of training, are between -1 and 1 of each. docs/\n"
      "gradients_on_impacts.md explains the columns of the table.");
}

// Windows in which the cube comes as near to the ground as `kNear`: `count` of them, or as many as are found.
Segments touching(const lcp::identification::MotionWindows& windows, std::int64_t count, std::int64_t steps,
                  double side, at::Generator random) {
  constexpr double kNear = 0.002;  // m
  const std::int64_t each = 1 + 4 * count / windows.recordings();
  const Segments drawn = windows.draw(at::arange(windows.recordings()), each, steps, random);
  const Tensor height =
      BodyForm(side).lowest_point(drawn.measured.position.squeeze(-2), drawn.measured.orientation.squeeze(-2)).amin(0);
  const Tensor near = (height < kNear).nonzero().squeeze(1);
  if (near.size(0) == 0) throw UsageError("the tosses have no contact with the ground z = 0");
  const Tensor order = at::randperm(near.size(0), random, at::kLong).slice(0, 0, count);
  return drawn.at(near.index_select(0, order));
}

// The windows and the parameters of a question.
struct Question {
  std::int64_t steps;  // of the windows
  std::int64_t point;
  Tensor raw;  // [4]
  Segments windows;
};

double number(const Tensor& x) { return x.item<double>(); }

// Of those that are not NaN.
double quantile(std::vector<double> x, double share) {
  std::erase_if(x, [](double y) { return std::isnan(y); });
  if (x.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::sort(x.begin(), x.end());
  const double place = share * static_cast<double>(x.size() - 1);
  const auto low = static_cast<std::size_t>(place);
  const std::size_t high = std::min(low + 1, x.size() - 1);
  return x[low] + (place - static_cast<double>(low)) * (x[high] - x[low]);
}

double median(const std::vector<double>& x) { return quantile(x, 0.5); }

double mean(const std::vector<double>& x) {
  double sum = 0;
  for (const double y : x) sum += y;
  return sum / static_cast<double>(x.size());
}

// Of vectors [..., 4]; 0 where one of them is 0.
Tensor cosine(const Tensor& a, const Tensor& b) {
  const Tensor norms = a.norm(2, {-1}) * b.norm(2, {-1});
  return at::where(norms > 0, (a * b).sum(-1) / norms, 0);
}

// What a layer's answers to all questions are worth.
class Verdict {
 public:
  // gradient, reference, own: [windows, 4], the layer's answer, which took `seconds`, and the wide differences of the
  // misfit of the exact cone, and of the layer's own loss.
  void add(const Question& question, const Tensor& gradient, double seconds, const Tensor& reference,
           const Tensor& own) {
    const Tensor finite = gradient.isfinite().all(-1);
    const Tensor both = (finite & reference.isfinite().all(-1) & own.isfinite().all(-1)).nonzero().squeeze(1);
    windows_ += gradient.size(0);
    failed_ += (~finite).sum().item<std::int64_t>();
    seconds_.push_back(seconds / static_cast<double>(gradient.size(0)));
    const auto some = [&](const Tensor& x) { return x.index_select(0, both); };
    const Tensor g = some(gradient), r = some(reference), o = some(own);
    zeros_ += (g == 0).sum().item<std::int64_t>();
    blind_ += ((g == 0) & (o != 0)).sum().item<std::int64_t>();
    seen_ += (o != 0).sum().item<std::int64_t>();
    entries_ += g.numel();
    const Tensor of_windows = cosine(g, o).masked_select(o.norm(2, {-1}) > 0);
    for (std::int64_t k = 0; k < of_windows.size(0); ++k) window_cosines_.push_back(number(of_windows[k]));
    mean_ = both.size(0) > 0 ? g.mean(0) : at::full({4}, std::numeric_limits<double>::quiet_NaN(), g.options());
    const Tensor mean_r = r.mean(0), mean_o = o.mean(0);
    cosines_[question.steps].push_back(number(cosine(mean_, mean_r)));
    own_cosines_.push_back(number(cosine(mean_, mean_o)));
    sizes_.push_back(number(mean_.norm() / mean_r.norm()));
    own_sizes_.push_back(number(mean_.norm() / mean_o.norm()));
  }

  // The mean gradient of the last question, [4].
  const Tensor& mean_gradient() const { return mean_; }

  nlohmann::json metrics() const {
    std::vector<double> all;
    for (const auto& [steps, some] : cosines_) all.insert(all.end(), some.begin(), some.end());
    const auto share = [](std::int64_t part, std::int64_t whole) {
      return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0.0;
    };
    return {{"cosine", mean(all)},
            {"cosine_short", mean(cosines_.begin()->second)},
            {"cosine_long", mean(cosines_.rbegin()->second)},
            {"own_cosine", mean(own_cosines_)},
            {"window_cosine", median(window_cosines_)},
            {"relative_size", median(sizes_)},
            {"own_relative_size", median(own_sizes_)},
            {"zero_fraction", share(zeros_, entries_)},
            {"blind_fraction", share(blind_, seen_)},
            {"nan_fraction", share(failed_, windows_)},
            {"seconds_per_gradient", median(seconds_)}};
  }

 private:
  std::int64_t windows_ = 0, failed_ = 0, zeros_ = 0, blind_ = 0, seen_ = 0, entries_ = 0;
  std::map<std::int64_t, std::vector<double>> cosines_;
  std::vector<double> own_cosines_, window_cosines_, sizes_, own_sizes_, seconds_;
  Tensor mean_;
};

// Where Adam ends with the gradients of a layer, from starts [s, 4] at once. Windows whose gradient is NaN are left
// out.
Tensor train(const GradientLayer& layer, const Tensor& from, const Segments& windows, const Flags& flags) {
  const Tensor raw = from.clone().requires_grad_();
  const std::int64_t starts = raw.size(0);
  torch::optim::Adam optimizer({raw}, torch::optim::AdamOptions(flags.learning_rate));
  for (std::int64_t k = 0; k < flags.iterations; ++k) {
    const Tensor drawn = at::randperm(windows.count(), generator(flags.run.seed, Stream::kMinibatches, k), at::kLong)
                             .slice(0, 0, flags.batch);
    const std::int64_t count = drawn.size(0);
    const Tensor each =
        gradient_of(layer, raw.detach().repeat_interleave(count, 0), windows.at(drawn.repeat({starts})));
    raw.mutable_grad() = each.view({starts, count, -1}).nan_to_num(0).mean(1);
    const double done = static_cast<double>(k) / static_cast<double>(flags.iterations);
    optimizer.param_groups()[0].options().set_lr(cosine_step_size(flags.learning_rate, done));
    optimizer.step();
  }
  return raw.detach();
}

// The misfit of the exact cone at each of the parameters raw, [s, 4]: [s], the mean over the windows that it solves.
Tensor misfits_at(const GradientLayer& reference, const Tensor& raw, const Segments& windows) {
  const torch::NoGradGuard no_grad;
  const Tensor all = at::arange(windows.count()).repeat({raw.size(0)});
  const Tensor found = reference.loss(raw.repeat_interleave(windows.count(), 0), windows.at(all));
  return found.view({raw.size(0), -1}).nanmean(-1);
}

std::string table_text(const nlohmann::json& layers) {
  std::string text = padded("layer", 32) + padded("cosine", 8) + padded("size", 9) + padded("zeros", 8) +
                     padded("NaN", 8) + padded("mu ends at", 20) + "misfit\n";
  for (const auto& layer : layers) {
    const auto value = [&](const char* key, int digits = 2) {
      return layer[key].is_number() ? short_number(layer[key].get<double>(), digits) : std::string("none");
    };
    text +=
        padded(layer["name"].get<std::string>(), 32) + padded(value("cosine"), 8) +
        padded(value("own_relative_size"), 9) + padded(value("zero_fraction"), 8) + padded(value("nan_fraction"), 8) +
        padded(value("mu", 3) + " (" + value("mu_low") + "-" + value("mu_high") + ")", 20) + value("misfit", 3) + "\n";
  }
  return text;
}

int judge_gradients(int argc, const char* const* argv) {
  CommandLine line(
      "judge_gradients",
      "Asks layers of contact the same question on tosses of a cube, recorded or simulated: the gradient "
      "of the\nmisfit of windows of motion in friction, restitution, side and inertia. Compares the answers "
      "with finite\ndifferences at a wide step, and where plain Adam ends with each from random starts.");
  Flags flags;
  flags.add_to(line);
  if (const auto status = line.parse(argc, argv)) return *status;
  flags.tosses.exclude_unused(line);
  if (flags.cube.mu == 0) throw UsageError("--mu must be > 0, since gradients in its logarithm are judged; got 0");
  if (flags.cube.restitution == 0 || flags.cube.restitution == 1) {
    throw UsageError("--restitution must be between 0 and 1, since gradients in its logit are judged; got " +
                     short_number(flags.cube.restitution));
  }
  if (flags.short_window > flags.window) throw UsageError("--short-window must be at most --window");
  FolderLock lock(flags.run.out);
  const std::optional<Checkpoint> checkpoint = resume(line, lock, flags.resume);
  torch::set_num_threads(static_cast<int>(flags.run.threads));
  const std::int64_t seed = flags.run.seed;

  const std::vector<Toss> all = flags.tosses.load(flags.cube.cube(), flags.contact, seed);
  const double rate = flags.tosses.rate, side = flags.cube.side;
  const Flights flights = fit_flights(all, side, rate);
  const double gravity = flights.gravity.value;
  flags.tosses.check_units(gravity);
  const lcp::identification::MotionWindows windows = windows_of(all, side, gravity, rate);
  CubeFlags far = flags.cube;
  far.mu = flags.initial_mu;
  far.side = flags.initial_side;
  far.inertia = flags.initial_inertia;
  far.gravity = gravity;
  far.drag = flights.seen_drag();
  const CubeModel model(far.cube(), flags.contact, rate, kJudgedParameters);
  const std::vector<GradientLayer> layers =
      gradient_layers({far.cube(), flags.contact, rate, side, flags.kappa, flags.wide, flags.narrow}, windows);
  const auto layer_count = static_cast<std::int64_t>(layers.size());
  const auto random = [&](Stream stream, std::int64_t rows) {
    return 2 * at::rand({rows, 4}, generator(seed, stream), at::kDouble) - 1;
  };

  // Near the values of the flags, where the misfit has its kink: a tenth of the way from there to the far start.
  const Tensor known = model.motion().numbers_of(
      torch::tensor({flags.cube.mu, flags.cube.restitution, side, flags.cube.inertia}, torch::kDouble));
  const Tensor points =
      at::cat({0.9 * known.unsqueeze(0), at::zeros({1, 4}, at::kDouble), random(Stream::kRandomStates, flags.points)});
  std::vector<Question> questions;
  for (const std::int64_t steps : {flags.short_window, flags.window}) {
    const Segments some = touching(windows, flags.windows, steps, side, generator(seed, Stream::kWindows, steps));
    for (std::int64_t k = 0; k < points.size(0); ++k) questions.push_back({steps, k, points[k], some});
  }
  const auto question_count = static_cast<std::int64_t>(questions.size());
  constexpr std::int64_t kPool = 256, kJudging = 64;
  const Segments pool = touching(windows, kPool, flags.training_window, side, generator(seed, Stream::kTosses, 2));
  const Segments judging = touching(windows, kJudging, flags.window, side, generator(seed, Stream::kHeldoutTosses));
  OutputFolder out(line, flags.run, std::move(lock));
  if (checkpoint) out.continue_earlier_run();

  // The wide differences of each loss, of the first layer that has it.
  std::map<std::string, std::size_t> models;
  for (std::size_t k = 0; k < layers.size(); ++k) models.try_emplace(layers[k].model, k);
  const auto answered = [&](std::int64_t task) {
    const auto k = static_cast<std::size_t>(task / question_count);
    const GradientLayer& layer = layers[k];
    const Question& question = questions[static_cast<std::size_t>(task % question_count)];
    const Tensor raw = question.raw.expand({question.windows.count(), 4});
    Checkpoint answer;
    if (models.at(layer.model) == k) answer.tensors["wide"] = differences(layer, flags.wide, raw, question.windows);
    const auto begin = std::chrono::steady_clock::now();
    answer.tensors["gradient"] = gradient_of(layer, raw, question.windows);
    answer.state = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return answer;
  };
  constexpr std::int64_t kGroup = 5;  // starts that a task trains
  const Tensor starts = random(Stream::kStarts, flags.starts);
  const std::vector<Tensor> groups = starts.split(kGroup);
  const auto group_count = static_cast<std::int64_t>(groups.size());
  const auto trained = [&](std::int64_t task) {
    const Tensor found = train(layers[static_cast<std::size_t>(task / group_count)],
                               groups[static_cast<std::size_t>(task % group_count)], pool, flags);
    return Checkpoint{{}, {{"ends", found}, {"misfits", misfits_at(layers[kReference], found, judging)}}};
  };
  // The answers, then the trainings.
  const std::int64_t answer_count = layer_count * question_count;
  Sweep sweep(out, flags.run, checkpoint, fingerprint(tensors_of(all)));
  const auto stopped = sweep.run(answer_count + layer_count * group_count, "task", [&](std::int64_t task) {
    return task < answer_count ? answered(task) : trained(task - answer_count);
  });
  if (stopped) return *stopped;
  if (!ProcessGroup::current().is_first()) return 0;
  const auto answer = [&](std::size_t layer, std::size_t question) -> const Checkpoint& {
    return sweep.results().at(static_cast<std::int64_t>(layer) * question_count + static_cast<std::int64_t>(question));
  };
  const auto of_trainings = [&](const char* name) {
    std::vector<Tensor> each;
    each.reserve(static_cast<std::size_t>(layer_count * group_count));
    for (std::int64_t task = 0; task < layer_count * group_count; ++task) {
      each.push_back(sweep.results().at(answer_count + task).tensors.at(name));
    }
    return at::cat(each).unflatten(0, {layer_count, flags.starts});
  };
  const Tensor ends = of_trainings("ends"), misfits = of_trainings("misfits");

  Table gradients, table;
  for (const char* name : {"layer", "steps", "point", "parameter", "gradient", "reference", "own_reference"})
    gradients.add(name, {});
  const Tensor values = model.values_at(ends);  // [layers, starts, 4]
  const Tensor best = misfits.flatten().nan_to_num(std::numeric_limits<double>::infinity()).argmin();
  const Tensor best_values = values.flatten(0, 1)[best.item<std::int64_t>()];
  nlohmann::json rows;
  for (std::size_t k = 0; k < layers.size(); ++k) {
    const auto row = static_cast<std::int64_t>(k);
    Verdict verdict;
    for (std::size_t i = 0; i < questions.size(); ++i) {
      const Tensor& reference = answer(kReference, i).tensors.at("wide");
      const Tensor& own = answer(models.at(layers[k].model), i).tensors.at("wide");
      verdict.add(questions[i], answer(k, i).tensors.at("gradient"), answer(k, i).state.get<double>(), reference, own);
      const Tensor mean_reference = reference.nanmean(0), mean_own = own.nanmean(0);
      for (std::int64_t parameter = 0; parameter < 4; ++parameter) {
        gradients.add_row({static_cast<double>(k), static_cast<double>(questions[i].steps),
                           static_cast<double>(questions[i].point), static_cast<double>(parameter),
                           number(verdict.mean_gradient()[parameter]), number(mean_reference[parameter]),
                           number(mean_own[parameter])});
      }
    }
    nlohmann::json entry = {{"name", layers[k].name}};
    entry.update(verdict.metrics());
    const std::vector<double> mu = entries_of(values[row].select(-1, 0)), misfit = entries_of(misfits[row]);
    entry["mu"] = median(mu);
    entry["mu_low"] = quantile(mu, 0.25);
    entry["mu_high"] = quantile(mu, 0.75);
    constexpr double kNear = 0.02;
    const Tensor near = (values[row].select(-1, 0) - best_values[0]).abs() <= kNear;
    entry["near_best"] = number(near.to(at::kDouble).mean());
    entry["misfit"] = median(misfit);
    rows.push_back(entry);
  }
  for (const auto& [key, value] : rows[0].items()) {
    if (key == "name") continue;
    std::vector<double> numbers;
    for (const auto& entry : rows) numbers.push_back(entry[key].get<double>());
    table.add(key, numbers);
  }
  TrajectoryTable of_ends("layer", flags.starts, layer_count);
  of_ends.add_steps("start").add(kJudgedParameters, values.transpose(0, 1)).add("misfit", misfits.t());

  const Tensor start_misfits = misfits_at(layers[kReference], starts, judging);
  nlohmann::json best_cube = {{"misfit", number(misfits.flatten()[best.item<std::int64_t>()])}};
  for (std::size_t i = 0; i < kJudgedParameters.size(); ++i) {
    best_cube[kJudgedParameters[i]] = number(best_values[static_cast<std::int64_t>(i)]);
  }
  const nlohmann::json metrics = {{"layers", rows},
                                  {"best", best_cube},
                                  {"start_misfit", median(entries_of(start_misfits))},
                                  {"tosses", all.size()},
                                  {"gravity", gravity}};
  out.write_csv("gradients.csv", gradients);
  out.write_csv("layers.csv", table);
  out.write_csv("ends.csv", of_ends.take());
  if (!flags.run.quiet) std::cout << table_text(rows);
  write_results(out, metrics, {"agreement.png", "ends.png"});
  return 0;
}

}  // namespace

int main(int argc, char** argv) { run_program("judge_gradients", judge_gradients, argc, argv, Processes::kDivided); }
