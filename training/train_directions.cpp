// Learns the directions of the friction polygon of a block in the plane, D, from motion alone [Notes, 4].
#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <iostream>
#include <numbers>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "lcp/nn/torchscript.h"
#include "lcp/physics/friction_cone.h"
#include "lcp/physics/planar_block.h"
#include "run/program.h"
#include "sliding_block/evaluation.h"
#include "sliding_block/samples.h"

namespace {

using namespace lcp::training;
using lcp::physics::PlanarBlock;
using torch::Tensor;

constexpr std::int64_t kHeldOut = 500;  // simulated steps
// A polygon that misses at most this share of dt mu g explains its data. One with 8 directions misses .08 of it on a
// floor whose friction is a disk.
constexpr double kNegligible = 0.1;
constexpr double kTurned = 0.3;  // rad, the angle of the first true direction
constexpr double kShort = 0.6;   // length of every second true direction, if friction has directions

struct Flags {
  RunFlags run;
  TrainingFlags training{.iterations = 1500, .learning_rate = 0.05};
  PhysicsFlags block{1, 1, 1, 1};
  std::int64_t samples = 500;
  std::int64_t directions = 8;
  std::int64_t true_directions = 0;
  std::int64_t starts = 8;
  std::string data;
};

using Steps = Samples;  // with v, u and v_next [n, 2]

PlanarBlock planar_block(const PhysicsFlags& block) {
  return PlanarBlock::of(block.mass, block.dt, block.mu, block.gravity);
}

// D is [..., 2, n]; v_next is NaN where the LCP was not solved.
Tensor step(const Steps& steps, const Tensor& D, const PlanarBlock& block) {
  const auto problem = lcp::physics::polyhedral_problem(steps.v, steps.u, block, D);
  const auto result = lcp::solve(problem.M, problem.q);
  return lcp::physics::read_polyhedral(result.z, result.w, steps.v, steps.u, block, D).v_next;
}

// The friction of a floor with a grain: a polygon that is turned, whose corners are at two distances.
Tensor true_directions(std::int64_t n) {
  const Tensor k = torch::arange(n, torch::kDouble),
               angle = kTurned + 2 * std::numbers::pi / static_cast<double>(n) * k;
  return torch::stack({angle.cos(), angle.sin()}) * (1 - (1 - kShort) * k.remainder(2));
}

Steps simulated(const Flags& flags, std::int64_t count, std::int64_t part) {
  const auto draw = [&](Stream stream, double unit) {
    return unit * at::randn({count, 2}, generator(flags.run.seed, stream, part), torch::kDouble);
  };
  Steps steps{draw(Stream::kSpeeds, flags.block.dt * flags.block.max_friction() / flags.block.mass),
              draw(Stream::kForces, flags.block.max_friction()),
              {},
              {},
              {}};
  const PlanarBlock block = planar_block(flags.block);
  steps.v_next = flags.true_directions > 0 ? step(steps, true_directions(flags.true_directions), block)
                                           : lcp::physics::exact_step(steps.v, steps.u, block).v_next;
  return steps;
}

std::pair<Steps, Steps> load(const Flags& flags) {
  if (flags.data.empty()) return {simulated(flags, flags.samples, 0), simulated(flags, kHeldOut, 1)};
  const Table table = read_csv(flags.data, {"v_x", "v_y", "u_x", "u_y", "v_next_x", "v_next_y"}, {"trajectory"});
  const Steps all{columns_of(table, {"v_x", "v_y"}),
                  columns_of(table, {"u_x", "u_y"}),
                  columns_of(table, {"v_next_x", "v_next_y"}),
                  {},
                  {}};
  const Tensor heldout = heldout_rows(table, flags.data);
  return {all.at(~heldout), all.at(heldout)};
}

// Several polygons at once, each from a random start of its own.
struct Polygons : torch::nn::Module {
  explicit Polygons(const Flags& flags) {
    const auto random = generator(flags.run.seed, Stream::kParameters);
    // One in each sector: a direction within the hull of others has no gradient.
    const Tensor sector = at::arange(flags.directions, torch::kDouble) +
                          at::rand({flags.starts, 1, flags.directions}, random, torch::kDouble);
    const Tensor angle = 2 * std::numbers::pi / static_cast<double>(flags.directions) * sector;
    D = register_parameter("D", torch::stack({angle.cos(), angle.sin()}, 2).to(flags.run.scalar_type()));
  }
  Tensor D;  // [starts, 1, 2, n]
};

// forward(v, u) and step(v, u) with the directions D, v and u [..., 2].
struct Polygon : torch::nn::Module {
  explicit Polygon(const Tensor& learned) : D(register_parameter("D", learned)) {}
  Tensor D;  // [2, n]
};

std::string torchscript_bytes(const Polygon& polygon, const PhysicsFlags& block) {
  const auto step = [&](const std::vector<Tensor>& inputs) {
    const Tensor v = inputs[0].to(polygon.D), u = inputs[1].to(polygon.D);
    const PlanarBlock parameters = planar_block(block);
    const auto problem = lcp::physics::polyhedral_problem(v, u, parameters, polygon.D);
    const auto result = lcp::solve(problem.M, problem.q);
    const auto next = lcp::physics::read_polyhedral(result.z, result.w, v, u, parameters, polygon.D);
    return std::tuple(next.v_next, next.force, result.status);
  };
  return lcp::nn::torchscript_of("FrictionPolygon", polygon,
                                 {{"dt", block.dt}, {"mass", block.mass}, {"gravity", block.gravity}, {"mu", block.mu}},
                                 {{"v", at::zeros({1, 2})}, {"u", at::zeros({1, 2})}}, step);
}

// A row of the table: how well friction with these directions predicts the held-out steps.
nlohmann::json measured(const std::string& name, const Steps& heldout, const Tensor& D, const PlanarBlock& block) {
  const Tensor v_next = step(heldout, D, block), rests = (heldout.v_next == 0).all(-1);
  const Tensor error = (v_next - heldout.v_next).norm(2, -1);
  return {{"directions", name},
          {"unknowns", D.size(-1) + 1},
          {"rmse", rmse(v_next - heldout.v_next)},
          {"largest_error", error.max().item<double>()},
          {"resting_exactly", ((v_next == 0).all(-1) & rests).sum().item<double>() / rests.sum().item<double>()}};
}

nlohmann::json table_of(const Steps& heldout, const Tensor& learned, const Flags& flags) {
  using lcp::physics::aligned_directions;
  const PlanarBlock block = planar_block(flags.block);
  nlohmann::json rows = nlohmann::json::array();
  for (const std::int64_t n : {4, 8, 16, 32}) {
    const std::string name = "regular, " + std::to_string(n);
    rows.push_back(measured(name, heldout, lcp::physics::friction_directions(n, torch::kDouble), block));
  }
  const Tensor none = torch::zeros({2}, torch::kDouble);
  const Tensor free = heldout.v + flags.block.dt / flags.block.mass * heldout.u;
  rows.push_back(measured("aligned with v", heldout, aligned_directions(heldout.v, none), block));
  rows.push_back(measured("aligned with u", heldout, aligned_directions(heldout.u, none), block));
  rows.push_back(measured("aligned with v and u", heldout, aligned_directions(heldout.v, heldout.u), block));
  rows.push_back(measured("aligned with v + dt u / m", heldout, aligned_directions(free, none), block));
  rows.push_back(measured("learned, " + std::to_string(learned.size(-1)), heldout, learned, block));
  return rows;
}

const std::vector<MarkdownColumn> kColumns = {{"directions", "directions"},
                                              {"unknowns", "unknowns"},
                                              {"rmse", "rmse, m/s"},
                                              {"largest_error", "largest error, m/s"},
                                              {"resting_exactly", "exactly 0, of the steps at rest", true}};

void add_flags(CommandLine& line, Flags& flags) {
  flags.run.add_to(line);
  flags.training.add_to(line);
  flags.block.add_to(line);
  line.add("samples", flags.samples, "Steps to simulate for training", at_least_one);
  line.add("directions", flags.directions, "Directions to learn",
           [](const std::int64_t& n) { return n >= 3 && n <= 64 ? "" : "from 3 to 64"; });
  line.add("true-directions", flags.true_directions,
           "Directions of the simulated friction, a polygon that is turned by .3 rad and whose corners are "
           "alternately at 1 and .6 mu m g; 0: a disk",
           [](const std::int64_t& n) { return n == 0 || (n >= 3 && n <= 64) ? "" : "0, or from 3 to 64"; });
  line.add("starts", flags.starts, "Random starts, of which the one that fits best is kept", at_least_one);
  line.add("data", flags.data, "CSV file to learn from instead of simulated data", nullptr, Role::kFile);
  line.footer(
      "Example: train_directions --directions 4 --true-directions 4 --out runs/grain\n"
      "Data of your own: CSV with columns v_x,v_y,u_x,u_y,v_next_x,v_next_y (m/s, N, m/s), and "
      "optionally\ntrajectory; one row in five, or one trajectory in five, is held out." +
      std::string(kModelNote) + kCheckpointNote);
}

int train_directions(int argc, const char* const* argv) {
  CommandLine line(
      "train_directions",
      "Learns the directions of friction of a block in the plane, whose convex hull times mu m g has all\n"
      "friction forces, from motion alone through lcp::solve, and compares them with regular polygons and\n"
      "with directions that are aligned with the velocity and the force of each step.");
  Flags flags;
  add_flags(line, flags);
  if (const auto status = line.parse(argc, argv)) return *status;
  flags.block.require_friction();
  if (!flags.data.empty()) line.exclude({"samples", "true-directions"}, "--data");
  FolderLock lock(flags.run.out);
  const std::optional<Checkpoint> checkpoint = resume(line, lock, flags.training.resume);
  torch::set_num_threads(static_cast<int>(flags.run.threads));

  const auto data = load(flags);
  const Steps &all = data.first, &heldout = data.second;
  const Steps training = all.to(flags.run.scalar_type());
  OutputFolder out(line, flags.run, std::move(lock));
  Trainer trainer(out, flags.run, flags.training, checkpoint);
  Polygons model(flags);
  const PlanarBlock block = planar_block(flags.block);
  const double unit = flags.block.dt * flags.block.max_friction() / flags.block.mass;
  const auto errors = [&] {
    return ((step(training, model.D, block) - training.v_next) / unit).square().sum(-1).mean(-1);
  };
  const auto best = [&] {
    const torch::NoGradGuard no_grad;
    return model.D.detach()[errors().argmin().item<std::int64_t>()][0].to(torch::kDouble);
  };
  const auto stopped = trainer.train(
      model, training.v.size(0), training.v.size(0), fingerprint({all.v, all.u, all.v_next, heldout.v_next}),
      [&](const Tensor&, double) -> LossTerms {
        const Tensor each = errors();
        return {{"loss", each.sum()}, {"best", each.min()}};
      },
      [&]() -> NamedValues {
        return {{"heldout_rmse", rmse(step(heldout, best(), block) - heldout.v_next)}};
      });
  if (stopped) return *stopped;

  const torch::NoGradGuard no_grad;
  const OneThread one_thread;
  const Tensor D = best();
  const Tensor sorted = D.index_select(1, torch::atan2(D[1], D[0]).argsort());
  const nlohmann::json rows = table_of(heldout, sorted, flags);
  const double error = rmse(step(heldout, sorted, block) - heldout.v_next);
  nlohmann::json metrics = {{"heldout_rmse", error},
                            {"unexplained", unexplained("held-out velocities", error, kNegligible * unit, " m/s")},
                            {"D", to_json(sorted)},
                            {"table", rows},
                            {"training_samples", training.v.size(0)},
                            {"final_loss", trainer.history()["loss"].back()}};
  if (flags.true_directions > 0) {
    const Tensor truth = true_directions(flags.true_directions);
    // The distance of each true direction to the nearest learned one.
    const Tensor distance = (truth.unsqueeze(-1) - sorted.unsqueeze(-2)).norm(2, 0);
    metrics["direction_error"] = distance.amin(-1).max().item<double>();
  }
  write_model(out, torchscript_bytes(Polygon(sorted), flags.block));
  const std::string page = markdown(rows, kColumns);
  out.write("table.md", page);
  if (!flags.run.quiet) std::cout << page << "\n";
  write_results(out, metrics, {"directions.png"});
  return 0;
}

}  // namespace

int main(int argc, char** argv) { run_program("train_directions", train_directions, argc, argv); }
