// Rollouts of b rigid bodies with p balls, h planes and c pairs that may touch: csrc/rigid, threads over trajectories.
// They compute in float64 alone: their caller converts.
#include <ATen/Parallel.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "ops/elements.h"
#include "ops/friction/operators.h"
#include "ops/parallel.h"
#include "ops/rollout/kind.h"
#include "ops/trajectories.h"
#include "rigid/adjoint.h"
#include "rigid/simulator.h"
#include "rigid/tangent.h"

namespace lcp::ops {
namespace rigid_rollouts {
namespace {

using rigid::kParameters;

// The largest number of a body, ball or plane.
constexpr std::int64_t kMostNumbers = 1 << 30;

constexpr std::int64_t kMostDirections = 1000;

// The least number of steps for which a task of their own is worth starting.
constexpr std::int64_t kStepsPerTask = 20;

// The places of the inputs behind the parameters, and of the results.
enum Input : std::size_t { kPosition = kParameters, kOrientation, kVelocity, kAngularVelocity, kForces, kInputs };
enum Output : std::size_t { kGamma = 4, kUnknowns, kStates, kChosen, kStatus, kIterations };

// A quaternion or a matrix takes its numbers row after row, and those of a body stand behind those of another. The
// parameters are in the order of rigid::Parameter.
std::vector<Argument> rigid_inputs() {
  return {
      tensor("mass", "b"),      tensor("inertia", "9b"),     tensor("drag", "b"),      tensor("centers", "3p"),
      tensor("radii", "p"),     tensor("normals", "3h"),     tensor("offsets", "h"),   tensor("gravity", "3"),
      tensor("mu", "c"),        tensor("restitution", "c"),  tensor("stiffness", "c"), tensor("dissipation", "c"),
      tensor("position", "3b"), tensor("orientation", "4b"), tensor("velocity", "3b"), tensor("angular_velocity", "3b"),
      tensor("u", "T 6b")};
}

std::vector<Result> rigid_results() {
  return {of_each_step("next_position", "T 3b"),
          of_each_step("next_orientation", "T 4b"),
          of_each_step("next_velocity", "T 3b"),
          of_each_step("next_angular_velocity", "T 3b"),
          of_each_step("gamma", "T 3c"),
          of_each_step("unknowns", "T s"),
          of_each_step("states", "T s", at::kChar),
          of_each_step("chosen", "T c", at::kChar),
          of_each_step("status", "T", at::kChar),
          of_each_step("iterations", "T", at::kLong)};
}

rigid::Law law_of(const StepText& step) {
  const auto name = step.word("formulation");
  const double kappa = step.number_if("kappa").value_or(0);
  if (name == "exact_cone") return {.formulation = rigid::Formulation::kExactCone, .kappa = kappa};
  if (name == "compliant") {
    TORCH_CHECK(kappa == 0, "kappa must be 0 for compliant contact; got ", kappa);
    return {rigid::Formulation::kCompliant, 0, 0, step.number("sigma"), step.number("beta")};
  }
  TORCH_CHECK(name == "polyhedral", "formulation must be exact_cone, polyhedral or compliant; got ", name);
  const std::int64_t directions = step.count("directions");
  TORCH_CHECK(directions >= 3 && directions <= kMostDirections, "directions must be from 3 to ", kMostDirections,
              "; got ", directions);
  return {.formulation = rigid::Formulation::kPolyhedral,
          .directions = static_cast<int>(directions),
          .angle = step.number("angle"),
          .kappa = kappa};
}

// The pairs of a scene with `planes` planes. Each has four numbers: body, ball, other body or -1, and the plane, or
// behind the planes the other ball. Bodies, balls and planes are numbered from 0, the balls of all bodies together.
std::vector<rigid::Pair> pairs_of(const StepText& step, int planes) {
  const std::vector<std::int64_t> numbers = step.counts("pairs");
  TORCH_CHECK(numbers.size() % 4 == 0, "pairs must have four numbers each; got ", numbers.size());
  std::vector<rigid::Pair> pairs;
  for (std::size_t k = 0; k < numbers.size(); k += 4) {
    const auto number = [&](std::size_t i) {
      TORCH_CHECK(numbers[k + i] >= -1 && numbers[k + i] <= kMostNumbers, "pairs must be numbers from -1 to ",
                  kMostNumbers, "; got ", numbers[k + i]);
      return static_cast<int>(numbers[k + i]);
    };
    const bool is_plane = number(3) < planes;
    pairs.push_back({number(0), number(1), number(2), is_plane ? number(3) : -1, is_plane ? -1 : number(3) - planes});
  }
  return pairs;
}

rigid::Scene scene_of(const StepText& step, at::TensorList x) {
  const auto count = [&](std::size_t k) { return static_cast<int>(x[k].size(-1)); };
  const int planes = count(rigid::kOffsets);
  return {count(rigid::kMass),
          count(rigid::kRadii),
          planes,
          pairs_of(step, planes),
          law_of(step),
          step.number("dt"),
          step.number_if("bounce_threshold"),
          step.number("stabilization")};
}

// Inputs, or tangents of them, in memory.
class Views {
 public:
  Views(at::IntArrayRef batch, at::TensorList x) : reader_(batch), u_(reader_.per_step(x[kForces])) {
    for (std::size_t k = 0; k < kForces; ++k) {
      views_[k] = reader_.per_trajectory(x[k], 1);
      size_[k] = x[k].size(-1);
    }
  }

  rigid::Parameters<const double> parameters(std::int64_t b) const {
    rigid::Parameters<const double> all;
    for (std::size_t k = 0; k < kParameters; ++k) all[k] = at(k, b);
    return all;
  }
  rigid::State<const double> first(std::int64_t b) const {
    return {at(kPosition, b), at(kOrientation, b), at(kVelocity, b), at(kAngularVelocity, b)};
  }
  rigid::Series<const double> u(std::int64_t b) const { return series_of(u_, b, 2 * size_[kPosition]); }

 private:
  const double* at(std::size_t k, std::int64_t b) const { return batch::from(views_[k], b, size_[k]).data; }

  TrajectoryReader<double> reader_;
  std::array<batch::BatchView<double>, kForces> views_;
  std::array<std::int64_t, kForces> size_ = {};
  lcs::StepsView<double> u_;
};

// The ends of steps and their impulses, or gradients of them, in memory.
class PathViews {
 public:
  PathViews(TrajectoryReader<double>& reader, at::TensorList x) {
    for (std::size_t k = 0; k <= kGamma; ++k) {
      views_[k] = reader.per_step(x[k]);
      size_[k] = x[k].size(-1);
    }
  }

  rigid::Path<const double> operator()(std::int64_t b) const {
    return {at(0, b), at(1, b), at(2, b), at(3, b), at(4, b)};
  }

 private:
  rigid::Series<const double> at(std::size_t k, std::int64_t b) const { return series_of(views_[k], b, size_[k]); }

  std::array<lcs::StepsView<double>, kGamma + 1> views_;
  std::array<std::int64_t, kGamma + 1> size_ = {};
};

// Walked trajectories in memory.
class WalkedViews {
 public:
  WalkedViews(at::IntArrayRef batch, at::TensorList path)
      : reader_(batch),
        path_(reader_, path),
        unknowns_(reader_.per_step(path[kUnknowns])),
        states_(reader_.per_step<std::int8_t>(path[kStates])),
        chosen_(reader_.per_step<std::int8_t>(path[kChosen])),
        status_(reader_.per_step<std::int8_t>(path[kStatus].unsqueeze(-1))),
        num_unknowns_(path[kUnknowns].size(-1)),
        contacts_(path[kChosen].size(-1)) {}

  rigid::WalkedPath operator()(const Views& inputs, std::int64_t b) const {
    return {inputs.first(b),
            inputs.u(b),
            path_(b),
            series_of(unknowns_, b, num_unknowns_),
            series_of(states_, b, num_unknowns_),
            series_of(chosen_, b, contacts_),
            series_of(status_, b, 1)};
  }

 private:
  TrajectoryReader<double> reader_;
  PathViews path_;
  lcs::StepsView<double> unknowns_;
  lcs::StepsView<std::int8_t> states_, chosen_, status_;
  std::int64_t num_unknowns_, contacts_;
};

rigid::Path<double> targets(at::TensorList x, std::int64_t count, std::int64_t b) {
  const auto at = [&](std::size_t k) { return series_of<double>(x[k], count, b, x[k].size(-1)); };
  return {at(0), at(1), at(2), at(3), at(4)};
}

class RigidKind final : public RolloutKind {
 public:
  RigidKind() : RolloutKind("rigid", rigid_inputs(), kInputs, rigid_results(), kGamma + 1) {}

  Plant plant() const override { return {kPosition, 4, kForces, kOrientation - kPosition}; }

  void check(const Call& call, const StepText& step) const override {
    TORCH_CHECK(call.first().scalar_type() == at::kDouble, "mass must be float64; got ", call.first().scalar_type());
    const auto planes = static_cast<int>(call.size('h').guard_int(__FILE__, __LINE__));
    const std::vector<rigid::Pair> pairs = pairs_of(step, planes);
    TORCH_CHECK(call.size('c') == static_cast<std::int64_t>(pairs.size()),
                "pairs must have four numbers for each of mu's c = ", call.size('c'), " contacts; got ",
                4 * pairs.size());
    for (std::size_t k = 0; k < pairs.size(); ++k) {
      const auto check_range = [&](const char* what, int number, int first, const c10::SymInt& end) {
        TORCH_CHECK(number >= first && number < end, "pair ", k, " names ", what, " ", number, " of ", end);
      };
      const rigid::Pair& pair = pairs[k];
      check_range("body", pair.body, 0, call.size('b'));
      check_range("ball", pair.ball, 0, call.size('p'));
      check_range("body", pair.other_body, -1, call.size('b'));
      if (pair.plane >= 0) {
        check_range("plane", pair.plane, 0, call.size('h'));
      } else {
        check_range("ball", pair.other_ball, 0, call.size('p'));
      }
      TORCH_CHECK(pair.body != pair.other_body && (pair.other_body >= 0 || pair.plane >= 0), "pair ", k,
                  " must be of a body and another one, or a fixed plane");
    }
    const auto check_sum = [&](const char* name, std::size_t count, const c10::SymInt& sum) {
      const std::vector<std::int64_t> all = step.counts(name);
      c10::SymInt found = 0;
      for (const std::int64_t each : all) {
        TORCH_CHECK(each >= 0 && each <= kMostNumbers, name, " must be from 0 to ", kMostNumbers, "; got ", each);
        found += each;
      }
      TORCH_CHECK(all.size() == count && found == sum, name, " must be ", count, " numbers with the sum ", sum,
                  "; got ", step.word(name));
    };
    check_sum("balls", static_cast<std::size_t>(call.size('b').guard_int(__FILE__, __LINE__)), call.size('p'));
    const std::vector<std::int64_t> touches = step.counts("touches");
    check_sum("touch_counts", planes, static_cast<std::int64_t>(touches.size()));
    for (const auto& [name, numbers] :
         {std::pair("touches", touches), std::pair("plane_bodies", step.counts("plane_bodies"))}) {
      for (const std::int64_t body : numbers) {
        TORCH_CHECK(body >= -1 && body < call.size('b'), name, " must be from -1 to ", call.size('b') - 1, "; got ",
                    body);
      }
    }
    TORCH_CHECK(static_cast<int>(step.counts("plane_bodies").size()) == planes, "plane_bodies must be ", planes,
                " numbers; got ", step.word("plane_bodies"));
    check_saved(call, call.size('c') * rigid::unknowns_of(law_of(step)));
  }

  std::int64_t saved(const StepText& step, at::TensorList x) const override {
    return x[rigid::kMu].size(-1) * rigid::unknowns_of(law_of(step));
  }

  void run(const StepText& step, at::TensorList x, std::int64_t saved, at::TensorList results) const override {
    const at::IntArrayRef batch = batch_of(results[kStatus]);
    const std::int64_t all = c10::multiply_integers(batch), steps = x[kForces].size(-2);
    if (all * steps == 0) return;
    const rigid::Scene scene = scene_of(step, x);
    const double tolerance = step.number("tolerance");
    const Directions directions(batch, {{inputs(), x}});
    const std::vector<Tensor> own_x = directions.without(inputs(), x);
    const Views views(directions.batch(), own_x);
    const std::int64_t count = directions.trajectories();
    parallel_for(0, count, trajectories_per_task(steps, kStepsPerTask), [&](std::int64_t begin, std::int64_t end) {
      rigid::Simulator simulator(scene, tolerance);
      for (std::int64_t trajectory = begin; trajectory < end; ++trajectory) {
        const std::int64_t b = directions.place(trajectory, 0);
        simulator.run(steps, views.parameters(trajectory), views.first(trajectory), views.u(trajectory),
                      targets(results, all, b),
                      {series_of<double>(results[kUnknowns], all, b, saved),
                       series_of<std::int8_t>(results[kStates], all, b, saved),
                       series_of<std::int8_t>(results[kChosen], all, b, scene.contacts()),
                       series_of<std::int8_t>(results[kStatus], all, b, 1),
                       series_of<std::int64_t>(results[kIterations], all, b, 1)});
        for (std::int64_t k = 1; k < directions.count(); ++k) {
          for (const Tensor& result : results) copy_steps(result, steps, all, b, directions.place(trajectory, k));
        }
      }
    });
  }

  void adjoint(const StepText& step, at::TensorList x, at::TensorList path, at::TensorList g, std::int64_t wanted,
               at::TensorList gradients) const override {
    const at::IntArrayRef batch = batch_of(gradients.front());
    const std::int64_t all = c10::multiply_integers(batch), steps = x[kForces].size(-2);
    if (all == 0) return;
    const rigid::Scene scene = scene_of(step, x);
    const Directions directions(batch, {{inputs(), x}, {this->path(), path}});
    const std::vector<Tensor> own_x = directions.without(inputs(), x),
                              own_path = directions.without(this->path(), path);
    const Views views(directions.batch(), own_x);
    const WalkedViews walked(directions.batch(), own_path);
    TrajectoryReader<double> reader(batch);
    const PathViews gradient(reader, g);
    const auto target = [&](std::size_t k, std::int64_t b) {
      return (wanted >> k & 1) != 0 ? gradients[k].mutable_data_ptr<double>() + b * gradients[k].size(-1) : nullptr;
    };
    for_each_part(directions, steps, [&](const auto& for_each_trajectory) {
      rigid::Adjoint adjoint(scene, step.number("tolerance"), rank_tolerance(x[rigid::kMass]),
                             ties_named(step.word("ties")));
      std::vector<rigid::Path<const double>> of_path;
      std::vector<rigid::Gradients> to;
      for_each_trajectory([&](std::int64_t trajectory, std::int64_t first, std::int64_t end) {
        of_path.clear();
        to.clear();
        for (std::int64_t direction = first; direction < end; ++direction) {
          const std::int64_t b = directions.place(trajectory, direction);
          of_path.push_back(gradient(b));
          to.push_back(
              {{},
               {target(kPosition, b), target(kOrientation, b), target(kVelocity, b), target(kAngularVelocity, b)},
               {target(kForces, b), all * 6 * scene.bodies}});
          for (std::size_t k = 0; k < kParameters; ++k) to.back().parameters[k] = target(k, b);
        }
        adjoint.run(steps, views.parameters(trajectory), walked(views, trajectory), of_path, to);
      });
    });
  }

  void tangent(const StepText& step, at::TensorList x, at::TensorList path, at::TensorList d,
               at::TensorList tangents) const override {
    const at::IntArrayRef batch = tangents.front().sizes().slice(0, tangents.front().dim() - 2);
    const std::int64_t all = c10::multiply_integers(batch), steps = x[kForces].size(-2);
    if (all * steps == 0) return;
    const rigid::Scene scene = scene_of(step, x);
    const Directions directions(batch, {{inputs(), x}, {this->path(), path}});
    const std::vector<Tensor> own_x = directions.without(inputs(), x),
                              own_path = directions.without(this->path(), path);
    const Views views(directions.batch(), own_x), along(batch, d);
    const WalkedViews walked(directions.batch(), own_path);
    // Inputs whose tangents are 0 for all trajectories are constants.
    std::array<bool, kInputs> varies;
    for (std::size_t k = 0; k < kInputs; ++k) varies[k] = !is_zero(d[k]);
    for_each_part(directions, steps, [&](const auto& for_each_trajectory) {
      rigid::Tangent tangent(scene, step.number("tolerance"), rank_tolerance(x[rigid::kMass]),
                             ties_named(step.word("ties")));
      std::vector<rigid::Direction> of_inputs;
      std::vector<rigid::Path<double>> to;
      for_each_trajectory([&](std::int64_t trajectory, std::int64_t first, std::int64_t end) {
        of_inputs.clear();
        to.clear();
        for (std::int64_t direction = first; direction < end; ++direction) {
          const std::int64_t b = directions.place(trajectory, direction);
          rigid::Direction& own =
              of_inputs.emplace_back(rigid::Direction{along.parameters(b), along.first(b), along.u(b)});
          for (std::size_t k = 0; k < kParameters; ++k) {
            if (!varies[k]) own.parameters[k] = nullptr;
          }
          if (!varies[kForces]) own.u.data = nullptr;
          to.push_back(targets(tangents, all, b));
        }
        tangent.run(steps, views.parameters(trajectory), walked(views, trajectory), of_inputs, to);
      });
    });
  }

 private:
  // Divides the trajectories and, where they are fewer than the threads, their directions among threads. Calls part(f)
  // on each; f(use) calls use(trajectory, first direction, end).
  template <class Part>
  static void for_each_part(const Directions& directions, std::int64_t steps, const Part& part) {
    const std::int64_t trajectories = directions.trajectories(), count = directions.count();
    const std::int64_t pieces = std::min(count, (at::get_num_threads() + trajectories - 1) / trajectories);
    parallel_for(0, trajectories * pieces, trajectories_per_task(steps * count / pieces, kStepsPerTask),
                 [&](std::int64_t begin, std::int64_t end) {
                   part([&](const auto& use) {
                     for (std::int64_t k = begin; k < end; ++k) {
                       const std::int64_t piece = k % pieces;
                       use(k / pieces, piece * count / pieces, (piece + 1) * count / pieces);
                     }
                   });
                 });
  }

  // Copies the steps of element `from` of a result with `all` elements to another one.
  static void copy_steps(const Tensor& result, std::int64_t steps, std::int64_t all, std::int64_t from,
                         std::int64_t to) {
    const std::int64_t bytes = result.numel() / (steps * all) * static_cast<std::int64_t>(result.element_size());
    auto* const first = static_cast<char*>(result.mutable_data_ptr());
    for (std::int64_t s = 0; s < steps; ++s) {
      std::memcpy(first + (s * all + to) * bytes, first + (s * all + from) * bytes, bytes);
    }
  }

  // Whether x is one 0 that is expanded.
  static bool is_zero(const Tensor& x) {
    for (std::int64_t k = 0; k < x.dim(); ++k) {
      if (x.size(k) > 1 && x.stride(k) != 0) return false;
    }
    return x.numel() > 0 && *x.const_data_ptr<double>() == 0;
  }
};

}  // namespace
}  // namespace rigid_rollouts

const RolloutKind& rigid_kind() {
  static const rigid_rollouts::RigidKind kind;
  return kind;
}

}  // namespace lcp::ops
