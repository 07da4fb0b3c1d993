// Rollouts of b rigid bodies with p balls, h planes and c pairs that may touch: csrc/rigid, threads over trajectories.
// They compute in float64 alone: their caller converts.
#include <ATen/Parallel.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <memory>
#include <string>

#include "ops/elements.h"
#include "ops/friction/operators.h"
#include "ops/parallel.h"
#include "ops/rollout/kind.h"
#include "ops/trajectories.h"
#include "rigid/adjoint.h"
#include "rigid/certification.h"
#include "rigid/linearization.h"
#include "rigid/simulator.h"
#include "rigid/tangent.h"

namespace lcp::ops {
void add_trees(const StepText& step, rigid::Scene& scene) {
  using rigid::Joint;
  const auto checked = [&](std::string_view name, std::int64_t number, std::int64_t first, std::int64_t end) {
    TORCH_CHECK(number >= first && number < end, name, " must be numbers from ", first, " to ", end - 1, "; got ",
                number);
    return static_cast<int>(number);
  };
  const std::vector<std::int64_t> parents = step.counts_if("parents"), joints = step.counts_if("joints");
  const auto links = static_cast<std::int64_t>(parents.size());
  TORCH_CHECK(links <= scene.bodies, "parents must be at most ", scene.bodies, " numbers; got ", links);
  const int free = scene.bodies - static_cast<int>(links);
  int positions = free, orientations = free, coordinates = 0, dof = 6 * free;
  std::size_t next = 0;
  for (int link = 0; link < links; ++link) {
    const int parent = checked("parents", parents[link], -1, link);
    rigid::Link& own = scene.links.emplace_back();
    own = {free + link,
           parent < 0 ? rigid::Pair::kWorld : free + parent,
           static_cast<int>(scene.joints.size()),
           0,
           dof,
           0};
    for (; next + 1 < joints.size() && joints[next] == link; next += 2, ++own.joints) {
      const auto kind = static_cast<Joint::Kind>(checked("joints", joints[next + 1], 0, 4));
      Joint joint = {kind, own.body, rigid::Pair::kNone, rigid::Pair::kNone, rigid::Pair::kNone, dof};
      TORCH_CHECK(kind != Joint::Kind::kFree || (parent < 0 && own.joints == 0),
                  "a free joint must be the only one of a body whose parent is the world; got one of link ", link);
      if (kind == Joint::Kind::kFree) joint.position = positions++;
      if (kind == Joint::Kind::kFree || kind == Joint::Kind::kBall) {
        joint.orientation = orientations++;
      } else {
        joint.coordinate = coordinates++;
      }
      dof += joint.dofs();
      own.dofs += joint.dofs();
      scene.joints.push_back(joint);
    }
  }
  TORCH_CHECK(next == joints.size(), "joints must be the link and the kind of each joint, link after link; got ",
              step.word("joints"));
  const auto driven = [&](std::string_view name, std::int64_t number) {
    const int joint = checked(name, number, 0, static_cast<std::int64_t>(scene.joints.size()));
    TORCH_CHECK(scene.joints[joint].coordinate >= 0, name, " must name slides and hinges; got joint ", joint);
    return joint;
  };
  const std::vector<double> control = step.numbers_if("control_ranges"), force = step.numbers_if("force_ranges");
  for (const std::int64_t joint : step.counts_if("actuators")) {
    const std::size_t k = 2 * scene.actuators.size();
    TORCH_CHECK(control.size() >= k + 2 && force.size() >= k + 2,
                "control_ranges and force_ranges must be two numbers "
                "for each actuator");
    scene.actuators.push_back({driven("actuators", joint), {control[k], control[k + 1]}, {force[k], force[k + 1]}});
  }
  const std::vector<std::int64_t> capsules = step.counts_if("capsules");
  for (std::size_t k = 0; k + 2 < capsules.size(); k += 3) {
    const int pair = checked("capsules", capsules[k], 0, static_cast<std::int64_t>(scene.pairs.size()));
    const auto end = [&](std::int64_t ball) { return checked("capsules", ball, -1, std::max(scene.balls, 1)); };
    scene.pairs[pair].end = end(capsules[k + 1]);
    scene.pairs[pair].other_end = end(capsules[k + 2]);
  }
  const std::vector<std::int64_t> limits = step.counts_if("limits");
  for (std::size_t k = 0; k + 1 < limits.size(); k += 2) {
    scene.pairs.push_back(
        {rigid::Pair::kWorld, 0, rigid::Pair::kWorld, -1, 0, driven("limits", limits[k]), limits[k + 1] != 0});
  }
  for (const std::int64_t number : step.counts_if("resisted")) {
    rigid::Pair& row = scene.pairs.emplace_back();
    row = {rigid::Pair::kWorld, 0, rigid::Pair::kWorld, -1, 0};
    row.resisted = scene.first_of_trees() + checked("resisted", number, 0, scene.dofs_of_trees());
  }
  for (const std::int64_t number : step.counts_if("servos")) {
    rigid::Pair& row = scene.pairs.emplace_back();
    row = {rigid::Pair::kWorld, 0, rigid::Pair::kWorld, -1, 0};
    row.servo = checked("servos", number, 0, static_cast<std::int64_t>(scene.actuators.size()));
    scene.actuators[row.servo].has_row = true;
  }
  const std::vector<std::int64_t> couplings = step.counts_if("couplings");
  for (std::size_t k = 0; k + 1 < couplings.size(); k += 2) {
    const int joint = driven("couplings", couplings[k]);
    const int other = couplings[k + 1] < 0 ? rigid::Pair::kNone : driven("couplings", couplings[k + 1]);
    TORCH_CHECK(joint != other, "couplings must be of two joints; got twice joint ", joint);
    rigid::Pair& row = scene.pairs.emplace_back();
    row = {rigid::Pair::kWorld, 0, rigid::Pair::kWorld, -1, 0};
    row.coupling = static_cast<int>(scene.couplings.size());
    scene.couplings.push_back({joint, other});
  }
  const std::vector<std::int64_t> closures = step.counts_if("closures");
  for (std::size_t k = 0; k + 2 < closures.size(); k += 3) {
    const int body = checked("closures", closures[k], 0, links),
              other = checked("closures", closures[k + 1], -1, links);
    TORCH_CHECK(body != other, "closures must be of two bodies; got twice body ", body);
    const bool is_weld = closures[k + 2] != 0;
    for (int axis = 0; axis < (is_weld ? 6 : 3); ++axis) {
      rigid::Pair& row = scene.pairs.emplace_back();
      row = {rigid::Pair::kWorld, 0, rigid::Pair::kWorld, -1, 0};
      row.closure = static_cast<int>(scene.closures.size());
      row.axis = axis;
    }
    scene.closures.push_back({free + body, other < 0 ? rigid::Pair::kWorld : free + other, is_weld});
  }
}

namespace rigid_rollouts {
namespace {

using rigid::kParameters;

// The largest number of a body, ball or plane.
constexpr std::int64_t kMostNumbers = 1 << 30;

constexpr std::int64_t kMostDirections = 1000;

// The least number of steps for which a task of their own is worth starting.
constexpr std::int64_t kStepsPerTask = 20;

// The places of the inputs behind the parameters, and of the results.
enum Input : std::size_t { kFirst = kParameters, kForces = kFirst + rigid::kStateParts, kInputs };
enum Output : std::size_t { kGamma = rigid::kStateParts, kUnknowns, kStates, kChosen, kStatus, kIterations };

// A quaternion or a matrix takes its numbers row after row, and those of a body stand behind those of another. The
// parameters are in the order of rigid::Parameter.
std::vector<Argument> rigid_inputs() {
  return {tensor("mass", "b"),
          tensor("inertia", "9b"),
          tensor("drag", "b"),
          tensor("centers", "3p"),
          tensor("radii", "p"),
          tensor("normals", "3h"),
          tensor("offsets", "h"),
          tensor("gravity", "3"),
          tensor("mu", "c"),
          tensor("restitution", "c"),
          tensor("stiffness", "c"),
          tensor("dissipation", "c"),
          tensor("mass_center", "3l"),
          tensor("placement", "3l"),
          tensor("placement_turn", "4l"),
          tensor("axis", "3j"),
          tensor("anchor", "3j"),
          tensor("limits", "2j"),
          tensor("springs", "2j"),
          tensor("damping", "d"),
          tensor("armature", "d"),
          tensor("friction_loss", "d"),
          tensor("gear", "a"),
          tensor("actuator_force", "4a"),
          tensor("box_sizes", "3e"),
          tensor("box_centers", "3e"),
          tensor("box_turns", "4e"),
          tensor("coupling", "5k"),
          tensor("closure", "6o"),
          tensor("closure_turn", "4o"),
          tensor("position", "3f"),
          tensor("orientation", "4r"),
          tensor("velocity", "3f"),
          tensor("angular_velocity", "3r"),
          tensor("coordinate", "q"),
          tensor("speed", "q"),
          tensor("u", "T m")};
}

std::vector<Result> rigid_results() {
  return {of_each_step("next_position", "T 3f"),
          of_each_step("next_orientation", "T 4r"),
          of_each_step("next_velocity", "T 3f"),
          of_each_step("next_angular_velocity", "T 3r"),
          of_each_step("next_coordinate", "T q"),
          of_each_step("next_speed", "T q"),
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

// The pairs of a scene with `planes` planes and `balls` balls. Each has four numbers: body, ball, other body or -1, and
// the plane, or behind the planes the other ball, or behind the balls the box. All are numbered from 0, the balls and
// the boxes of all bodies together.
std::vector<rigid::Pair> pairs_of(const StepText& step, int planes, int balls) {
  const std::vector<std::int64_t> numbers = step.counts("pairs");
  TORCH_CHECK(numbers.size() % 4 == 0, "pairs must have four numbers each; got ", numbers.size());
  std::vector<rigid::Pair> pairs;
  for (std::size_t k = 0; k < numbers.size(); k += 4) {
    const auto number = [&](std::size_t i) {
      TORCH_CHECK(numbers[k + i] >= -1 && numbers[k + i] <= kMostNumbers, "pairs must be numbers from -1 to ",
                  kMostNumbers, "; got ", numbers[k + i]);
      return static_cast<int>(numbers[k + i]);
    };
    const int other = number(3), box = other - planes - balls;
    rigid::Pair& pair = pairs.emplace_back(rigid::Pair{number(0), number(1), number(2), -1, rigid::Pair::kNone});
    if (other < planes) {
      pair.plane = other;
    } else if (box < 0) {
      pair.other_ball = other - planes;
    } else {
      pair.box = box;
    }
  }
  return pairs;
}

// What a text says of a scene with these numbers of bodies, balls and planes.
struct Described {
  std::string text;
  double tolerance;
  rigid::Scene scene;

  Described(const StepText& step, int bodies, int balls, int planes, int boxes)
      : text(step.text()),
        tolerance(step.number("tolerance")),
        scene{bodies,
              balls,
              planes,
              pairs_of(step, planes, balls),
              law_of(step),
              step.number("dt"),
              step.number_if("bounce_threshold"),
              step.number("stabilization")} {
    scene.boxes = boxes;
    check_pairs();
    check_lists(step);
    add_trees(step, scene);
    TORCH_CHECK(scene.links.empty() || scene.law.formulation != rigid::Formulation::kCompliant,
                "bodies with joints must have rigid contact; got compliant contact");
    if (scene.rows() == 0) return;
    TORCH_CHECK(scene.law.kappa == 0, "kappa must be 0 for robots with friction_loss, couplings or closures; got ",
                scene.law.kappa);
    TORCH_CHECK(scene.bounce_threshold == std::numeric_limits<double>::max(),
                "bounce_threshold must be absent for robots with friction_loss, couplings or closures");
    const bool has_equations = !scene.couplings.empty() || !scene.closures.empty();
    TORCH_CHECK(!has_equations || scene.law.formulation == rigid::Formulation::kExactCone,
                "formulation must be exact_cone for robots with couplings or closures; got ", step.word("formulation"));
  }

 private:
  void check_pairs() const {
    for (std::size_t k = 0; k < scene.pairs.size(); ++k) {
      const auto check_range = [&](const char* what, int number, int first, int end) {
        TORCH_CHECK(number >= first && number < end, "pair ", k, " names ", what, " ", number, " of ", end);
      };
      const rigid::Pair& pair = scene.pairs[k];
      check_range("body", pair.body, 0, scene.bodies);
      check_range("ball", pair.ball, 0, scene.balls);
      check_range("body", pair.other_body, -1, scene.bodies);
      if (pair.plane >= 0) {
        check_range("plane", pair.plane, 0, scene.planes);
      } else if (pair.box != rigid::Pair::kNone) {
        check_range("box", pair.box, 0, scene.boxes);
      } else {
        check_range("ball", pair.other_ball, 0, scene.balls);
      }
      TORCH_CHECK(pair.body != pair.other_body && (pair.other_body >= 0 || pair.plane >= 0), "pair ", k,
                  " must be of a body and another one, or a fixed plane");
    }
  }

  void check_lists(const StepText& step) const {
    const auto check_sum = [&](const char* name, int count, std::int64_t sum) {
      const std::vector<std::int64_t> all = step.counts(name);
      std::int64_t found = 0;
      for (const std::int64_t each : all) {
        TORCH_CHECK(each >= 0 && each <= kMostNumbers, name, " must be from 0 to ", kMostNumbers, "; got ", each);
        found += each;
      }
      TORCH_CHECK(std::ssize(all) == count && found == sum, name, " must be ", count, " numbers with the sum ", sum,
                  "; got ", step.word(name));
    };
    check_sum("balls", scene.bodies, scene.balls);
    const std::vector<std::int64_t> touches = step.counts("touches"), fixed_to = step.counts("plane_bodies");
    check_sum("touch_counts", scene.planes, std::ssize(touches));
    for (const auto& [name, numbers] : {std::pair("touches", touches), std::pair("plane_bodies", fixed_to)}) {
      for (const std::int64_t body : numbers) {
        TORCH_CHECK(body >= -1 && body < scene.bodies, name, " must be from -1 to ", scene.bodies - 1, "; got ", body);
      }
    }
    TORCH_CHECK(std::ssize(fixed_to) == scene.planes, "plane_bodies must be ", scene.planes, " numbers; got ",
                step.word("plane_bodies"));
  }
};

// The last one is kept, since single steps have the same text again and again.
std::shared_ptr<const Described> described(const StepText& step, int bodies, int balls, int planes, int boxes) {
  thread_local std::shared_ptr<const Described> last;
  const bool is_same = last && last->scene.bodies == bodies && last->scene.balls == balls &&
                       last->scene.planes == planes && last->scene.boxes == boxes && last->text == step.text();
  if (!is_same) last = std::make_shared<const Described>(step, bodies, balls, planes, boxes);
  return last;
}

std::shared_ptr<const Described> described(const StepText& step, at::TensorList x) {
  const auto count = [&](std::size_t k) { return static_cast<int>(x[k].size(-1)); };
  return described(step, count(rigid::kMass), count(rigid::kRadii), count(rigid::kOffsets),
                   count(rigid::kBoxSizes) / 3);
}

// A Simulator, Adjoint or Tangent of a scene. One of a small scene is kept for the next call in the same thread: to
// make it takes longer than a single step.
template <class Workspace>
class Kept {
 public:
  template <class... Arguments>
  Kept(std::shared_ptr<const Described> scene, const Arguments&... arguments) : scene_(std::move(scene)) {
    if (last().scene_ == scene_) workspace_ = std::move(last().workspace_);
    if (!workspace_) workspace_ = std::make_unique<Workspace>(scene_->scene, scene_->tolerance, arguments...);
  }

  Workspace* operator->() { return workspace_.get(); }

  // To be called at the end, but not where the work has thrown.
  void keep() {
    if (3 * std::int64_t{scene_->scene.contacts()} * scene_->scene.velocities() > kMostNumbersOfJ) return;
    last().workspace_ = std::move(workspace_);
    last().scene_ = scene_;
  }

 private:
  static constexpr std::int64_t kMostNumbersOfJ = 1 << 15;  // together with the rest, some hundred kB

  Kept() = default;
  static Kept& last() {
    thread_local Kept kept;
    return kept;
  }

  std::shared_ptr<const Described> scene_;  // outlives the workspace
  std::unique_ptr<Workspace> workspace_;
};

// Inputs, or tangents of them, in memory.
class Views {
 public:
  Views(at::IntArrayRef batch, at::TensorList x)
      : reader_(batch), u_(reader_.per_step(x[kForces])), inputs_(x[kForces].size(-1)) {
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
    rigid::State<const double> all;
    for (std::size_t part = 0; part < all.size(); ++part) all[part] = at(kFirst + part, b);
    return all;
  }
  rigid::Series<const double> u(std::int64_t b) const { return series_of(u_, b, inputs_); }

 private:
  const double* at(std::size_t k, std::int64_t b) const { return batch::from(views_[k], b, size_[k]).data; }

  TrajectoryReader<double> reader_;
  std::array<batch::BatchView<double>, kForces> views_;
  std::array<std::int64_t, kForces> size_ = {};
  lcs::StepsView<double> u_;
  std::int64_t inputs_;
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
    rigid::Path<const double> all;
    for (std::size_t part = 0; part < all.parts.size(); ++part) all.parts[part] = at(part, b);
    all.gamma = at(kGamma, b);
    return all;
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
  rigid::Path<double> all;
  for (std::size_t part = 0; part < all.parts.size(); ++part) all.parts[part] = at(part);
  all.gamma = at(kGamma);
  return all;
}

// Of trees; see linearize_rollout.
constexpr std::array<Result, 2> kLinearization = {Result{"by_state", "2d 2d"}, Result{"by_control", "2d a"}};

// Of trees; see certify_rollout.
const std::array<Result, 3> kCertificate = {of_each_step("residual", "T"), of_each_step("margin", "T"),
                                            of_each_step("gap", "T")};

class RigidKind final : public RolloutKind {
 public:
  RigidKind() : RolloutKind("rigid", rigid_inputs(), kInputs, rigid_results(), kGamma + 1) {}

  Plant plant() const override { return {kFirst, rigid::kStateParts, kForces, rigid::kOrientation}; }

  void check(const Call& call, const StepText& step) const override {
    TORCH_CHECK(call.first().scalar_type() == at::kDouble, "mass must be float64; got ", call.first().scalar_type());
    const auto count = [&](char letter) { return static_cast<int>(call.size(letter).guard_int(__FILE__, __LINE__)); };
    const auto known = described(step, count('b'), count('p'), count('h'), count('e'));
    const rigid::Scene& scene = known->scene;
    TORCH_CHECK(call.size('c') == scene.contacts(),
                "pairs, limits, resisted, servos, couplings and closures must be as many as mu's c = ", call.size('c'),
                " contacts; got ", scene.contacts());
    check_sizes(call, scene);
    check_saved(call, call.size('c') * rigid::unknowns_of(scene.law));
  }

  std::int64_t saved(const StepText& step, at::TensorList x) const override {
    return x[rigid::kMu].size(-1) * rigid::unknowns_of(described(step, x)->scene.law);
  }

  void run(const StepText& step, at::TensorList x, std::int64_t saved, at::TensorList results) const override {
    const at::IntArrayRef batch = batch_of(results[kStatus]);
    const std::int64_t all = c10::multiply_integers(batch), steps = x[kForces].size(-2);
    if (all * steps == 0) return;
    const auto known = described(step, x);
    const rigid::Scene& scene = known->scene;
    const Directions directions(batch, {{inputs(), x}});
    const std::vector<Tensor> own_x = directions.without(inputs(), x);
    const Views views(directions.batch(), own_x);
    const std::int64_t count = directions.trajectories();
    parallel_for(0, count, trajectories_per_task(steps, kStepsPerTask), [&](std::int64_t begin, std::int64_t end) {
      Kept<rigid::Simulator> simulator(known);
      for (std::int64_t trajectory = begin; trajectory < end; ++trajectory) {
        const std::int64_t b = directions.place(trajectory, 0);
        const auto parameters = views.parameters(trajectory);
        const bool has_begun = trajectory > begin && parameters == views.parameters(trajectory - 1);
        simulator->run(steps, parameters, views.first(trajectory), views.u(trajectory), targets(results, all, b),
                       {series_of<double>(results[kUnknowns], all, b, saved),
                        series_of<std::int8_t>(results[kStates], all, b, saved),
                        series_of<std::int8_t>(results[kChosen], all, b, scene.contacts()),
                        series_of<std::int8_t>(results[kStatus], all, b, 1),
                        series_of<std::int64_t>(results[kIterations], all, b, 1)},
                       has_begun);
        for (std::int64_t k = 1; k < directions.count(); ++k) {
          for (const Tensor& result : results) copy_steps(result, steps, all, b, directions.place(trajectory, k));
        }
      }
      simulator.keep();
    });
  }

  void adjoint(const StepText& step, at::TensorList x, at::TensorList path, at::TensorList g, std::int64_t wanted,
               at::TensorList gradients) const override {
    const at::IntArrayRef batch = batch_of(gradients.front());
    const std::int64_t all = c10::multiply_integers(batch), steps = x[kForces].size(-2);
    if (all == 0) return;
    const auto known = described(step, x);
    const rigid::Scene& scene = known->scene;
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
      Kept<rigid::Adjoint> adjoint(known, rank_tolerance(x[rigid::kMass]), ties_named(step.word("ties")));
      std::vector<rigid::Path<const double>> of_path;
      std::vector<rigid::Gradients> to;
      for_each_trajectory([&](std::int64_t trajectory, std::int64_t first, std::int64_t end) {
        of_path.clear();
        to.clear();
        for (std::int64_t direction = first; direction < end; ++direction) {
          const std::int64_t b = directions.place(trajectory, direction);
          of_path.push_back(gradient(b));
          to.push_back({{}, {}, {target(kForces, b), all * rigid::inputs_of(scene)}});
          for (std::size_t part = 0; part < rigid::kStateParts; ++part) {
            to.back().first[part] = target(kFirst + part, b);
          }
          for (std::size_t k = 0; k < kParameters; ++k) to.back().parameters[k] = target(k, b);
        }
        adjoint->run(steps, views.parameters(trajectory), walked(views, trajectory), of_path, to);
      });
      adjoint.keep();
    });
  }

  void tangent(const StepText& step, at::TensorList x, at::TensorList path, at::TensorList d,
               at::TensorList tangents) const override {
    const at::IntArrayRef batch = tangents.front().sizes().slice(0, tangents.front().dim() - 2);
    const std::int64_t all = c10::multiply_integers(batch), steps = x[kForces].size(-2);
    if (all * steps == 0) return;
    const auto known = described(step, x);
    const Directions directions(batch, {{inputs(), x}, {this->path(), path}});
    const std::vector<Tensor> own_x = directions.without(inputs(), x),
                              own_path = directions.without(this->path(), path);
    const Views views(directions.batch(), own_x), along(batch, d);
    const WalkedViews walked(directions.batch(), own_path);
    // Inputs whose tangents are 0 for all trajectories are constants.
    std::array<bool, kInputs> varies;
    for (std::size_t k = 0; k < kInputs; ++k) varies[k] = !is_zero(d[k]);
    for_each_part(directions, steps, [&](const auto& for_each_trajectory) {
      Kept<rigid::Tangent> tangent(known, rank_tolerance(x[rigid::kMass]), ties_named(step.word("ties")));
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
        tangent->run(steps, views.parameters(trajectory), walked(views, trajectory), of_inputs, to);
      });
      tangent.keep();
    });
  }

  c10::ArrayRef<Result> linearization() const override { return kLinearization; }

  void linearize(const StepText& step, at::TensorList x, at::TensorList path, at::TensorList results) const override {
    const at::IntArrayRef batch = results.front().sizes().slice(0, results.front().dim() - 2);
    const std::int64_t steps = x[kForces].size(-2), all = c10::multiply_integers(batch);
    if (all == 0) return;
    const auto known = described(step, x);
    TORCH_CHECK(known->scene.free() == 0, "scenes whose bodies are all of trees can be linearized");
    const Views views(batch, x);
    const WalkedViews walked(batch, path);
    parallel_for(0, all, trajectories_per_task(steps, kStepsPerTask), [&](std::int64_t begin, std::int64_t end) {
      Kept<rigid::Linearization> linearization(known, rank_tolerance(x[rigid::kMass]), ties_named(step.word("ties")));
      for (std::int64_t b = begin; b < end; ++b) {
        const auto target = [&](std::size_t k) {
          return results[k].mutable_data_ptr<double>() + b * results[k].size(-1) * results[k].size(-2);
        };
        linearization->run(steps, views.parameters(b), walked(views, b), target(0), target(1));
      }
      linearization.keep();
    });
  }

  c10::ArrayRef<Result> certificate() const override { return kCertificate; }

  void certify(const StepText& step, at::TensorList x, at::TensorList path, at::TensorList results) const override {
    const at::IntArrayRef batch = batch_of(results.front());
    const std::int64_t steps = x[kForces].size(-2), all = c10::multiply_integers(batch);
    if (all * steps == 0) return;
    const auto known = described(step, x);
    TORCH_CHECK(known->scene.free() == 0 && known->scene.law.formulation == rigid::Formulation::kExactCone &&
                    known->scene.bounce_threshold == std::numeric_limits<double>::max(),
                "robots are certified with the formulation exact_cone and without bounce_threshold");
    const Views views(batch, x);
    const WalkedViews walked(batch, path);
    parallel_for(0, all, trajectories_per_task(steps, kStepsPerTask), [&](std::int64_t begin, std::int64_t end) {
      rigid::Certification certification(known->scene, known->tolerance, rank_tolerance(x[rigid::kMass]));
      for (std::int64_t b = begin; b < end; ++b) {
        const auto target = [&](std::size_t k) { return series_of<double>(results[k], all, b, 1); };
        certification.run(steps, views.parameters(b), walked(views, b), {target(0), target(1), target(2)});
      }
    });
  }

 private:
  // Throws where the sizes are not those of the state and of the trees.
  static void check_sizes(const Call& call, const rigid::Scene& scene) {
    const auto check_size = [&](char letter, const char* what, int count) {
      TORCH_CHECK(call.size(letter) == count, "a scene with these bodies and joints must have ", count, " ", what,
                  "; got ", call.size(letter));
    };
    check_size('l', "bodies with parents", static_cast<int>(scene.links.size()));
    check_size('j', "joints", static_cast<int>(scene.joints.size()));
    check_size('d', "degrees of freedom", scene.dofs_of_trees());
    check_size('a', "actuators", static_cast<int>(scene.actuators.size()));
    check_size('k', "couplings", static_cast<int>(scene.couplings.size()));
    check_size('o', "closures", static_cast<int>(scene.closures.size()));
    check_size('f', "positions", rigid::size_of(rigid::kPosition, scene) / 3);
    check_size('r', "orientations", rigid::size_of(rigid::kOrientation, scene) / 4);
    check_size('q', "coordinates", rigid::size_of(rigid::kCoordinate, scene));
    check_size('m', "numbers of u", rigid::inputs_of(scene));
  }

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
