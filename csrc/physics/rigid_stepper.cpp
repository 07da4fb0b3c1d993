#include "physics/rigid_stepper.h"

#include <ATen/ATen.h>
#include <ATen/ExpandUtils.h>
#include <c10/core/GradMode.h>

#include <limits>
#include <utility>

#include "lcp/certify_contact.h"
#include "lcp/certify_friction.h"
#include "lcp/physics/rotation.h"
#include "lcp/solve.h"
#include "lcp/solve_contact.h"
#include "lcp/solve_friction.h"
#include "lcp/status.h"

namespace lcp::physics {
namespace {

using at::Tensor;

constexpr double kInfinity = std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();

// As csrc/rigid/simulator.cpp and csrc/rigid/step.h have them.
constexpr double kSlack = 1e-10, kSameTime = 1e-9;
constexpr std::int64_t kMostImpacts = 64, kMostOfPair = 32;

// The parts along the normals, [..., c], of vectors [..., 3 c], and the reverse, with 0 along the tangents.
Tensor normal_part(const Tensor& x) { return x.unflatten(-1, {-1, 3}).select(-1, 2); }
Tensor along_normals(const Tensor& x) {
  const Tensor none = at::zeros_like(x);
  return vector_of({none, none, x}).flatten(-2);
}

Tensor normal_rows(const Tensor& J) { return J.unflatten(-2, {-1, 3}).select(-2, 2); }

// are: whether each contact is an impact, [..., c]. jump: as in StepContacts.
struct Impacts {
  Tensor are, jump;
};

// speed: with which they close. arrival: with which they would just meet. threshold: [..., 1]. All in m/s.
Impacts impacts_of(const Tensor& speed, const Tensor& arrival, const Tensor& threshold) {
  const c10::NoGradGuard no_grad;
  const Tensor is_fast = speed > threshold, arrives = speed > arrival;
  const Tensor to_threshold = at::where(arrives, (speed - threshold).abs(), kInfinity);
  return {is_fast & arrives, at::where(is_fast, at::minimum(to_threshold, (speed - arrival).abs()), to_threshold)};
}

Tensor is_bad(const RigidState& state, const Tensor& v_free, const StepContacts& contacts) {
  const c10::NoGradGuard no_grad;
  const Tensor square = state.orientation.square().sum(-1);
  return ~((square > 0) & square.isfinite()).all(-1) |
         ~normal_part(matvec(contacts.J, v_free) + contacts.b).isfinite().all(-1);
}

// The parts with these places, int64, [..., m], of parts [..., c, each, k]: [..., m, each, k].
Tensor taken(const Tensor& parts, const Tensor& index) {
  Shape whole = index.sizes().vec();
  whole.back() = parts.size(-3);
  whole.insert(whole.end(), {parts.size(-2), parts.size(-1)});
  Shape some = whole;
  some[some.size() - 3] = index.size(-1);
  return parts.expand(whole).gather(-3, index.unsqueeze(-1).unsqueeze(-1).expand(some));
}

}  // namespace

void check_scene(const RigidScene& scene, const RigidOptions& options) {
  TORCH_CHECK(!scene.bodies.empty(), "a scene must have at least one body");
  positive_number("dt", scene.dt);
  for (const RigidBody& body : scene.bodies) {
    const auto has = [](const Tensor& x, c10::SymIntArrayRef last) {
      const auto count = static_cast<std::int64_t>(last.size());
      bool fits = x.dim() >= count;
      for (std::int64_t k = 0; fits && k < count; ++k) fits = x.sym_size(k - count) == last[k];
      return fits;
    };
    TORCH_CHECK(has(body.inertia, std::array<c10::SymInt, 2>{3, 3}), "inertia must be [..., 3, 3]; got ",
                body.inertia.sym_sizes());
    TORCH_CHECK(body.radii.dim() > 0 && has(body.centers, std::array<c10::SymInt, 2>{body.radii.sym_size(-1), 3}),
                "centers must be [..., p, 3] and radii [..., p]; got ", body.centers.sym_sizes(), " and ",
                body.radii.sym_sizes());
  }
  for (const Plane& plane : scene.planes) {
    TORCH_CHECK(plane.normal.dim() > 0 && plane.normal.sym_size(-1) == 3,
                "the normal of a plane must be [..., 3]; got ", plane.normal.sym_sizes());
    const auto check_body = [&](std::int64_t body, std::int64_t first) {
      const auto bodies = static_cast<std::int64_t>(scene.bodies.size());
      TORCH_CHECK(body >= first && body < bodies, "a plane names body ", body, " of ", bodies);
    };
    check_body(plane.body, Plane::kWorld);
    for (const std::int64_t body : plane.touches) check_body(body, 0);
  }
  TORCH_CHECK(scene.gravity.dim() > 0 && scene.gravity.sym_size(-1) == 3, "gravity must be [..., 3]; got ",
              scene.gravity.sym_sizes());
  check_options(options);
}

void check_options(const RigidOptions& options) {
  TORCH_CHECK(options.substeps >= 1, "substeps must be >= 1; got ", options.substeps);
  TORCH_CHECK(options.stabilization >= 0 && options.stabilization <= 1, "stabilization must be in [0, 1]; got ",
              options.stabilization);
  TORCH_CHECK(options.kappa == 0 || options.formulation != RigidFormulation::kCompliant,
              "kappa must be 0 for compliant contact; got ", options.kappa);
  if (options.formulation == RigidFormulation::kPolyhedral && options.kappa == 0) check_ties(options.ties);
}

c10::SymDimVector checked_batch(const RigidScene& scene, const RigidOptions& options, std::int64_t pairs) {
  c10::SymDimVector shape;
  const auto add = [&](const Tensor& x, std::int64_t core_dims) {
    shape = at::infer_size_symdimvector(shape, x.sym_sizes().slice(0, x.dim() - core_dims));
  };
  add(scene.gravity, 1);
  for (const RigidBody& body : scene.bodies) {
    add(body.mass, 0);
    add(body.inertia, 2);
    add(body.centers, 2);
    add(body.radii, 1);
    if (body.drag.defined()) add(body.drag, 0);
  }
  for (const Plane& plane : scene.planes) {
    add(plane.normal, 1);
    add(plane.offset, 0);
  }
  const auto add_checked = [&](const char* name, const Tensor& x) {
    TORCH_CHECK(x.defined() && x.dim() > 0 && (x.sym_size(-1) == 1 || x.sym_size(-1) == pairs), name,
                " must be [..., 1] or [..., ", pairs, "], as there are pairs of contact; got ",
                x.defined() ? c10::str(x.sym_sizes()) : "none");
    add(x, 1);
  };
  add_checked("mu", scene.mu);
  if (options.formulation == RigidFormulation::kCompliant) {
    add_checked("stiffness", scene.stiffness);
    add_checked("dissipation", scene.dissipation);
  } else {
    add_checked("restitution", scene.restitution);
  }
  return shape;
}

// The chosen contacts of each element, first, and what is known of them. Elements that chose fewer than others have
// further contacts behind theirs, which do not count.
struct RigidStepper::Chosen {
  Tensor index;  // int64, [..., m], the places of the chosen among all pairs
  Tensor sizes;  // int64, [...], how many count
  Tensor J, b, mu, R;

  std::int64_t count() const { return index.size(-1); }
  Tensor exists() const { return at::arange(count(), index.options()) < sizes.unsqueeze(-1); }
};

// The LCP of polyhedral friction, with the unknowns of each contact (normal, directions, slip) one behind another, so
// that those of the contacts that count come first.
struct RigidStepper::Polyhedral {
  // A v_free that is not finite counts as 0, and q is NaN there. Products of tensors with v_free itself would make NaN
  // of gradients that are 0.
  Polyhedral(const RigidStepper& stepper, const Tensor& v_free, const Chosen& chosen)
      : stepper_(stepper), chosen_(chosen), unknowns_(stepper.options_.directions.count + 2) {
    is_bad_ = ~v_free.isfinite().all(-1);
    v_free_ = v_free.masked_fill(is_bad_.unsqueeze(-1), 0);
    nan_ = at::where(is_bad_, v_free.sum(-1), 0);
    const FrictionProblem problem =
        friction_problem(stepper.A_, v_free_, chosen.J, chosen.b, chosen.mu, stepper.options_.directions);
    // friction_problem orders them as all normals, all directions and all slips.
    const std::int64_t m = chosen.count();
    const Tensor place = at::arange(m * unknowns_, at::kLong);
    const Tensor by_kind =
        at::cat({place.narrow(0, 0, m).unsqueeze(-1), place.narrow(0, m, m * (unknowns_ - 2)).view({m, unknowns_ - 2}),
                 place.narrow(0, m * (unknowns_ - 1), m).unsqueeze(-1)},
                -1)
            .flatten();
    by_kind_ = by_kind.argsort();
    problem_ = {problem.M.index_select(-2, by_kind).index_select(-1, by_kind),
                problem.q.index_select(-1, by_kind) + nan_.unsqueeze(-1)};
    SolveOptions options;
    // q counts where it is NaN.
    options.sizes = unknowns_ * at::maximum(chosen.sizes, is_bad_.to(at::kLong)).clamp_max(m);
    options.kappa = stepper.options_.kappa;
    if (options.kappa == 0) {
      options.ties = stepper.options_.ties;
    } else {
      leave_out_friction(chosen.mu == 0);
    }
    options.tolerance = stepper.options_.tolerance;
    result = lcp::solve(problem_.M, problem_.q, options);
  }

  // NaN where the LCP was not solved.
  StepOutcome outcome() const {
    const Tensor status = result.status.masked_fill(is_bad_, static_cast<std::int8_t>(Status::kBadInput));
    const Tensor solved = (status == 0).unsqueeze(-1), nan = (result.z.sum(-1) + nan_).unsqueeze(-1);
    const FrictionMotion motion =
        friction_motion(stepper_.A_, v_free_, chosen_.J, at::where(solved, result.z, 0).index_select(-1, by_kind_),
                        stepper_.options_.directions);
    return {at::where(solved, motion.v, nan),
            at::where(solved, motion.gamma, nan),
            {},
            status,
            at::zeros_like(chosen_.sizes),
            {}};
  }

  // scale: [...], the largest velocity of the problem.
  StepCertificate certify(const Tensor& scale) const {
    const auto parts = [&](const Tensor& x) { return x.unflatten(-1, {-1, unknowns_}); };
    const Tensor z = parts(result.z), w = parts(result.w),
                 residual = parts(at::minimum(result.z, matvec(problem_.M, result.z) + problem_.q).abs());
    const Tensor exists = chosen_.exists();
    if (chosen_.count() == 0) return {at::zeros_like(scale), at::full_like(scale, kInfinity)};
    const Tensor d = delassus_diagonal(stepper_.A_, chosen_.J);
    const auto kind = [&](const Tensor& x, std::int64_t k) { return x.select(-1, k); };
    const Tensor normal = at::maximum(d * kind(z, 0), kind(w, 0));
    // While a contact sticks, its pairs of directions are tied, but it does not move.
    const Tensor slips = kind(z, unknowns_ - 1) > 0;
    const Tensor directions = at::maximum(d.unsqueeze(-1) * z.slice(-1, 1, -1), w.slice(-1, 1, -1)).amin(-1);
    const Tensor slip = at::maximum(kind(z, unknowns_ - 1), d * kind(w, unknowns_ - 1));
    const Tensor friction = at::minimum(slip, at::where(slips, directions, kInfinity));
    const Tensor margin = at::minimum(normal, at::where(kind(z, 0) > 0, friction, kInfinity));
    return {at::where(exists, residual.amax(-1), 0).amax(-1) / scale,
            at::where(exists, margin, kInfinity).amin(-1) / scale};
  }

  SolveResult result;

 private:
  // Contacts without friction, [..., m], get w = z + 1 for their directions and slip, apart from the rest. The friction
  // of the LCP, with sum_j lambda_j <= 0, has no point with z_i w_i = kappa; as mu falls to 0, its points tend to this.
  void leave_out_friction(const Tensor& smooth) {
    const Tensor is_friction = at::arange(unknowns_, at::kLong) > 0;
    const Tensor is_left_out = (smooth.unsqueeze(-1) & is_friction).flatten(-2);
    const Tensor one = at::eye(is_left_out.size(-1), problem_.M.options());
    problem_.M = at::where(is_left_out.unsqueeze(-1) | is_left_out.unsqueeze(-2), one, problem_.M);
    problem_.q = at::where(is_left_out, 1, problem_.q);
  }

  const RigidStepper& stepper_;
  const Chosen& chosen_;
  Tensor is_bad_, v_free_, nan_;
  std::int64_t unknowns_;  // of each contact
  Problem problem_;
  Tensor by_kind_;  // the places of the unknowns in the order of friction_problem
};

RigidStepper::RigidStepper(const RigidScene& scene, const RigidOptions& options, at::ScalarType dtype)
    : options_(options), dt_(scene.dt), geometry_((check_scene(scene, options), scene), dtype) {
  if (!options_.tolerance && (dtype == at::kDouble || options_.formulation == RigidFormulation::kExactCone)) {
    options_.tolerance = RigidOptions::kTolerance;
  }
  const std::int64_t pairs = geometry_.contacts();
  for (const c10::SymInt& size : checked_batch(scene, options, pairs))
    batch_.push_back(size.guard_int(__FILE__, __LINE__));
  Shape shape = geometry_.batch();
  for (const RigidBody& body : scene.bodies) {
    shape = common_shape({shape, body.mass.sizes(), leading(body.inertia, 2)});
    if (body.drag.defined()) shape = common_shape({shape, body.drag.sizes()});
  }
  Tensors masses, inertias, drags;
  for (const RigidBody& body : scene.bodies) {
    masses.push_back(expanded(body.mass.to(dtype), shape));
    inertias.push_back(expanded(body.inertia.to(dtype), shape, {3, 3}));
    drags.push_back(body.drag.defined() ? expanded(body.drag.to(dtype), shape) : at::zeros_like(masses.back()));
  }
  mass_ = at::stack(masses, -1);
  inertia_ = at::stack(inertias, -3);
  drag_ = at::stack(drags, -1);
  gravity_ = scene.gravity.to(dtype);
  const auto of_contacts = [&](const Tensor& x) { return expanded(x.to(dtype), leading(x).vec(), {pairs}); };
  mu_ = of_contacts(scene.mu);
  if (options.formulation == RigidFormulation::kCompliant) {
    stiffness_ = of_contacts(scene.stiffness);
    dissipation_ = of_contacts(scene.dissipation);
  } else {
    restitution_ = of_contacts(scene.restitution);
  }
  const Tensor turning = inertia_, moving = at::diag_embed(mass_.unsqueeze(-1).expand_as(inertia_.select(-1, 0)));
  const Tensor none = at::zeros_like(turning);
  const Tensor blocks = at::cat({at::cat({moving, none}, -1), at::cat({none, turning}, -1)}, -2);  // [..., B, 6, 6]
  const Tensor same = at::eye(bodies(), blocks.options()).unsqueeze(-1).unsqueeze(1);              // [B, 1, B, 1]
  A_ = (blocks.unsqueeze(-2) * same).flatten(-2).flatten(-3, -2);
}

Tensor RigidStepper::free_velocity(const RigidState& state, const Tensor& u) const {
  const Tensor force = u.narrow(-1, 0, 3) - drag_.unsqueeze(-1) * state.velocity;
  const Tensor acceleration = force / mass_.unsqueeze(-1) + gravity_.unsqueeze(-2);
  const Tensor omega =
      gyroscopic(state.angular_velocity, inertia_, dt_) + dt_ * solve_3x3(inertia_, u.narrow(-1, 3, 3));
  return at::cat({state.velocity + dt_ * acceleration, omega}, -1).flatten(-2);
}

StepContacts RigidStepper::find(const RigidState& state, const Tensor& v_free) const {
  const RigidContacts found = geometry_.find(state);
  const Tensor before = at::cat({state.velocity, state.angular_velocity}, -1).flatten(-2);
  StepContacts contacts{before, found.J, found.gap, {}, {}, {}, {}, {}};
  if (options_.formulation == RigidFormulation::kCompliant) {
    const auto [v_hat, R] = contact_parameters(found.gap, stiffness_, dissipation_, delassus_diagonal(A_, found.J), dt_,
                                               options_.regularization);
    contacts.b = -v_hat;
    contacts.R = R;
    contacts.bad = is_bad(state, v_free, contacts);
    return contacts;
  }
  contacts.b = along_normals(closing_of(found.gap, found.gap, at::full({}, dt_, found.gap.options()),
                                        at::zeros({}, found.gap.options()), at::zeros({}, at::kBool)));
  contacts.bad = is_bad(state, v_free, contacts);
  const c10::NoGradGuard no_grad;
  const Tensor speed = -matvec(normal_rows(found.J), v_free);
  const Impacts impacts = impacts_of(speed, found.gap / ((1 + kSameTime) * dt_), threshold());
  contacts.waits = impacts.are;
  contacts.jump = impacts.jump;
  return contacts;
}

Tensor RigidStepper::threshold() const {
  if (options_.bounce_threshold) return at::full({1}, *options_.bounce_threshold, gravity_.options());
  return (2 * dt_ * gravity_.square().sum(-1, true).sqrt()).detach();
}

// b of contacts that take no part in an impact. left: what is left of the gap. remaining: s, until the end of the step.
// speed: with which they close. has_met: bool, which have had an impact in the step.
Tensor RigidStepper::closing_of(const Tensor& gap, const Tensor& left, const Tensor& remaining, const Tensor& speed,
                                const Tensor& has_met) const {
  const double least = kSameTime * dt_;
  const Tensor is_open = left > at::where(has_met, least * speed.abs(), 0);
  return at::where(is_open, left / at::where(remaining > least, remaining, least),
                   at::where(has_met | (gap > 0), 0, options_.stabilization / dt_ * gap));
}

RigidStepper::Chosen RigidStepper::choose(const StepContacts& contacts, const Tensor& b,
                                          const Tensor& is_chosen) const {
  Chosen chosen;
  chosen.sizes = is_chosen.sum(-1);
  const std::int64_t most = chosen.sizes.numel() > 0 ? chosen.sizes.max().item<std::int64_t>() : 0;
  chosen.index = is_chosen.logical_not().to(at::kByte).argsort(/*stable=*/true, /*dim=*/-1).narrow(-1, 0, most);
  chosen.J = taken(contacts.J.unflatten(-2, {-1, 3}), chosen.index).flatten(-3, -2);
  const auto taken_vector = [&](const Tensor& x, std::int64_t each) {
    return taken(x.unflatten(-1, {-1, each}).unsqueeze(-1), chosen.index).flatten(-3);
  };
  chosen.b = taken_vector(b, 3);
  chosen.mu = taken_vector(mu_, 1);
  if (contacts.R.defined()) chosen.R = taken_vector(contacts.R, 3);
  return chosen;
}

StepOutcome RigidStepper::solve(const Tensor& given, const StepContacts& contacts) const {
  const Tensor v_free =
      contacts.bad.any().item<bool>() ? given + at::where(contacts.bad, kNaN, 0).unsqueeze(-1) : given;
  StepOutcome outcome;
  const Tensor may_choose = contacts.waits.defined() ? ~contacts.waits : at::ones_like(contacts.gap, at::kBool);
  // The LCP of a pile at rest is hard to solve for only some of its contacts, which round-off would choose. A smoothed
  // derivative sees all pairs.
  const double slack = options_.formulation == RigidFormulation::kPolyhedral ? -kSlack : 0;
  hold(contacts, v_free, contacts.b, may_choose,
       options_.kappa > 0 ? may_choose : may_choose & closing(contacts, contacts.b, v_free, slack), outcome);
  outcome.problems.back().jump = contacts.jump;
  if (contacts.waits.defined() && contacts.waits.any().item<bool>()) {
    collide(contacts, outcome);
  } else {
    outcome.motion = dt_ * outcome.v;
  }
  return outcome;
}

// Which pairs the velocities v bring to close, faster than `slack` times the largest velocity of all contacts.
Tensor RigidStepper::closing(const StepContacts& contacts, const Tensor& b, const Tensor& v, double slack) const {
  const c10::NoGradGuard no_grad;
  const Tensor u = matvec(contacts.J, v), sum = u + b;
  Tensor least = geometry_.contacts() > 0 ? -slack * u.abs().amax(-1, true) : at::zeros({1}, u.options());
  if (options_.formulation == RigidFormulation::kCompliant) {
    least = least + mu_ * u.unflatten(-1, {-1, 3}).narrow(-1, 0, 2).norm(2, {-1});
  }
  return normal_part(sum) < least;
}

// Solves the contacts that are chosen, and chooses more, until none closes that may be chosen. from: the velocities
// before that. The problem becomes part of the outcome.
void RigidStepper::hold(const StepContacts& contacts, const Tensor& from, const Tensor& b, const Tensor& may_choose,
                        Tensor is_chosen, StepOutcome& outcome) const {
  Tensor iterations = at::zeros({}, at::kLong), grown = at::ones({}, at::kBool);
  for (;;) {
    const Chosen chosen = choose(contacts, b, is_chosen);
    StepOutcome found = solve(from, chosen);
    found.iterations = iterations = iterations + at::where(grown, found.iterations, 0);
    Tensor next = is_chosen | (may_choose & closing(contacts, b, found.v, kSlack));
    if (options_.formulation == RigidFormulation::kPolyhedral) {
      // Lemke's method may fail for some of the contacts, and not for all.
      const Tensor failed = (found.status != 0) & (found.status != static_cast<std::int8_t>(Status::kBadInput));
      next = next | (may_choose & failed.unsqueeze(-1));
    }
    grown = (next != is_chosen).any(-1);
    if (!grown.any().item<bool>()) {
      add({from, b, is_chosen, may_choose, {}, {}, {}, {}}, chosen, found, outcome);
      return;
    }
    is_chosen = next;
  }
}

// Adds the solution of a problem to the outcome. Elements of which an earlier problem was not solved keep theirs.
void RigidStepper::add(StepProblem problem, const Chosen& chosen, const StepOutcome& solution,
                       StepOutcome& outcome) const {
  const Tensor impulses = at::where(chosen.exists().unsqueeze(-1), solution.gamma.unflatten(-1, {-1, 3}), 0);
  const Tensor index = chosen.index.unsqueeze(-1).expand_as(impulses);
  Shape shape = problem.is_chosen.sizes().vec();
  shape.push_back(3);
  problem.gamma = at::zeros(shape, impulses.options()).scatter(-2, index, impulses).flatten(-2);
  problem.v = solution.v;
  if (outcome.problems.empty()) {
    outcome.v = problem.v;
    outcome.gamma = problem.gamma;
    outcome.status = solution.status;
    outcome.iterations = solution.iterations;
  } else {
    const Tensor solved = outcome.status == 0;
    outcome.v = at::where(solved.unsqueeze(-1), problem.v, outcome.v);
    outcome.gamma = outcome.gamma + problem.gamma;
    outcome.status = at::where(solved, solution.status, outcome.status);
    outcome.iterations = outcome.iterations + at::where(problem.is_chosen.any(-1), solution.iterations, 0);
  }
  outcome.problems.push_back(std::move(problem));
}

// Solves the impacts one after another, and after each what it has brought to close slowly; csrc/rigid/step.h has the
// formulas.
void RigidStepper::collide(const StepContacts& contacts, StepOutcome& outcome) const {
  // Where a problem was not solved, finite numbers keep NaN out of the gradients of what elements share.
  const auto velocity = [&] { return at::where((outcome.status == 0).unsqueeze(-1), outcome.v, 0); };
  const Tensor rows = normal_rows(contacts.J), start = velocity(), &gap = contacts.gap;
  const Tensor growth = matvec(rows, contacts.before) - matvec(rows, start);
  const Tensor infinity = at::full({}, kInfinity, gap.options()), &members = geometry_.members();
  Tensor least;
  {
    const c10::NoGradGuard no_grad;
    const Tensor v_free = outcome.problems.front().from.nan_to_num();
    const double round_off = 16 * (gap.scalar_type() == at::kDouble ? std::numeric_limits<double>::epsilon()
                                                                    : std::numeric_limits<float>::epsilon());
    const Tensor smallest = at::maximum(-kSlack * matvec(rows, v_free), round_off * matvec(rows.abs(), v_free.abs()));
    least = at::maximum(threshold(), at::where(contacts.waits, smallest, 0).amax(-1, true));
  }
  Tensor motion = at::zeros_like(start), elapsed = at::zeros_like(start.narrow(-1, 0, 1));  // [..., 1]
  // What a contact does to its bodies, [..., c, B, 3]: held_velocity of csrc/rigid/step.h.
  const Tensor inverse = at::where(members, mass_.reciprocal().unsqueeze(-2), 0);
  const Tensor along = rows.unflatten(-1, {-1, 6}).narrow(-1, 0, 3) * (inverse / inverse.sum(-1, true)).unsqueeze(-1);
  Tensor held_motion = at::zeros_like(contacts.before.unflatten(-1, {-1, 6}).narrow(-1, 0, 3));
  Tensor has_met = at::zeros_like(contacts.waits);
  Tensor changed;  // [..., 1], bool, whether a contact that is no impact may close since the last problem
  const std::int64_t most = kMostImpacts + kMostOfPair * geometry_.contacts();
  for (std::int64_t count = 0;; ++count) {
    const Tensor left = gap + matvec(rows, motion), remaining = dt_ - elapsed, reach = remaining + kSameTime * dt_;
    const auto impacts_now = [&] {
      return impacts_of(-matvec(rows, velocity()), left / reach, count < most ? least : infinity);
    };
    Impacts impacts = impacts_now();
    if (!changed.defined()) changed = (contacts.waits & ~impacts.are).any(-1, true);
    if (changed.any().item<bool>()) {
      const Tensor v = velocity(), may_choose = changed & ~impacts.are,
                   b = along_normals(closing_of(gap, left, remaining, matvec(rows, v), has_met));
      hold(contacts, v, b, may_choose, options_.kappa > 0 ? may_choose : may_choose & closing(contacts, b, v, kSlack),
           outcome);
      impacts = impacts_now();
    }
    const Tensor v = velocity(), speed = -matvec(rows, v);
    const Tensor& are = impacts.are;
    if (!are.any().item<bool>()) break;
    changed = are.any(-1, true);
    const Tensor whole = left + speed * elapsed, first = speed - growth / 2;
    const Tensor square = first.square() + 2 / dt_ * growth * whole;
    const Tensor is_open = are & (left + growth * elapsed * remaining / (2 * dt_) > 0),
                 is_regular = is_open & (square > 0);
    const Tensor root = at::where(is_regular, first, 1) + at::where(is_regular, square, 1).sqrt();
    Tensor time = at::where(is_regular, 2 * whole / root, at::where(is_open, dt_, elapsed));
    time = at::where(time < elapsed + kSameTime * dt_, elapsed, at::where(time > dt_, dt_, time));
    const Tensor times = at::where(are, time, infinity).detach();
    const Tensor is_first = are & (times <= times.amin(-1, true) + kSameTime * dt_);
    const Tensor collides = (is_first.unsqueeze(-1) & geometry_.collisions()).any(-2);
    const Tensor closes = (speed > 0) & (speed * reach > left);
    // A contact that touches and does not rebound takes part, too.
    const Tensor touches =
        closing(contacts, along_normals(closing_of(gap, left, remaining, speed, has_met)), v, -kSlack) & ~are &
        (restitution_ == 0) & is_first.any(-1, true);
    const Tensor is_chosen = (collides & (are | closes)) | touches;
    // Several first impacts at the same time have the mean of their derivatives.
    const Tensor firsts = is_first.sum(-1, true),
                 now = at::where(firsts > 0, at::where(is_first, time, 0).sum(-1, true) / firsts.clamp_min(1), elapsed);
    motion = motion + (now - elapsed) * v;
    elapsed = now;
    const Tensor share = 1 / dt_ * time, rebound = restitution_ * speed,
                 after = (1 + restitution_) * growth * (share - 0.5);
    const Tensor opening = positive_part(rebound + at::minimum(after, rebound)), least_opening = growth * share / 2;
    const Tensor is_held = are & (opening < least_opening);
    const Tensor held = at::where(is_held, growth - 2 * opening / at::where(is_held, share, 1), 0);
    const Tensor closing_b = closing_of(gap, gap + matvec(rows, motion), dt_ - elapsed, speed, has_met);
    const Tensor b =
        along_normals(at::where(are, at::where(gap > 0, -opening, at::minimum(-opening, closing_b)), closing_b));
    has_met = has_met | (is_chosen & are);
    const Chosen chosen = choose(contacts, b, is_chosen);
    add({v, b, is_chosen, at::zeros_like(is_chosen), {}, {}, impacts.jump, times}, chosen, solve(v, chosen), outcome);
    const Tensor hits =
        (is_first & (normal_part(outcome.problems.back().gamma) > 0)).unsqueeze(-1) & members;  // [..., c, B]
    const Tensor of_body = hits.sum(-2).unsqueeze(-1);
    const Tensor mean = at::where(hits.unsqueeze(-1), held.unsqueeze(-1).unsqueeze(-1) * along, 0).sum(-3) /
                        of_body.clamp_min(1);  // [..., B, 3]
    const Tensor now_of_body = now.unsqueeze(-1);
    held_motion = at::where(of_body > 0, now_of_body * (dt_ - now_of_body) / (2 * dt_) * mean, held_motion);
  }
  motion = motion + (dt_ - elapsed) * velocity();
  const Tensor held = at::cat({held_motion, at::zeros_like(held_motion)}, -1).flatten(-2);
  outcome.motion = motion + held;
}

StepOutcome RigidStepper::solve(const Tensor& v_free, const Chosen& chosen) const {
  switch (options_.formulation) {
    case RigidFormulation::kExactCone: {
      FrictionResult result =
          solve_friction(A_, v_free, chosen.J, chosen.b, chosen.mu,
                         {.sizes = chosen.sizes, .kappa = options_.kappa, .tolerance = options_.tolerance});
      return {std::move(result.v),      std::move(result.gamma),      {},
              std::move(result.status), std::move(result.iterations), {}};
    }
    case RigidFormulation::kPolyhedral:
      return Polyhedral(*this, v_free, chosen).outcome();
    case RigidFormulation::kCompliant: {
      ContactResult result = solve_contact(A_, v_free, chosen.J, -chosen.b, chosen.R, chosen.mu,
                                           {.sizes = chosen.sizes, .tolerance = options_.tolerance});
      return {std::move(result.v),      std::move(result.gamma),      {},
              std::move(result.status), std::move(result.iterations), {}};
    }
  }
  unknown_formulation();
}

RigidState RigidStepper::advance(const RigidState& state, const Tensor& v, const Tensor& motion) const {
  const Tensor nu = v.unflatten(-1, {-1, 6}), moved = motion.unflatten(-1, {-1, 6});
  return {state.position + moved.narrow(-1, 0, 3), turned(state.orientation, moved.narrow(-1, 3, 3)),
          nu.narrow(-1, 0, 3), nu.narrow(-1, 3, 3)};
}

StepCertificate RigidStepper::certify(const StepContacts& contacts, const StepOutcome& outcome) const {
  StepCertificate worst =
      certify(contacts, outcome.problems.front(), at::zeros_like(outcome.problems.front().is_chosen));
  Tensor touches = normal_part(outcome.problems.front().gamma) > 0;
  for (std::size_t k = 1; k < outcome.problems.size(); ++k) {
    const StepCertificate found = certify(contacts, outcome.problems[k], touches);
    touches = touches | (normal_part(outcome.problems[k].gamma) > 0);
    worst = {at::maximum(worst.residual, found.residual), at::minimum(worst.margin, found.margin)};
  }
  return worst;
}

// touched: which contacts an earlier problem of the step has closed, [..., c]. These stay as they are, unless a later
// one moves them.
StepCertificate RigidStepper::certify(const StepContacts& contacts, const StepProblem& problem,
                                      const Tensor& touched) const {
  const Tensor sum = matvec(contacts.J, problem.v) + problem.b;
  if (geometry_.contacts() == 0) {
    const Tensor none = at::zeros(sum.sizes().slice(0, sum.dim() - 1), sum.options());
    return {none, none + kInfinity};
  }
  const Tensor from = matvec(contacts.J, problem.from) + problem.b, scale = from.abs().amax(-1);
  if (options_.formulation == RigidFormulation::kCompliant) {
    const auto found = certify_contact(A_, problem.from, contacts.J, -contacts.b, contacts.R, mu_, problem.v);
    return {found.residual, found.margin};
  }
  const Chosen chosen = choose(contacts, problem.b, problem.is_chosen);
  StepCertificate certificate;
  if (options_.formulation == RigidFormulation::kPolyhedral) {
    certificate = Polyhedral(*this, problem.from, chosen).certify(scale);
  } else {
    const Tensor gamma = taken(problem.gamma.unflatten(-1, {-1, 3}).unsqueeze(-1), chosen.index).flatten(-3);
    const auto found =
        certify_friction(A_, problem.from, chosen.J, chosen.b, chosen.mu, problem.v, gamma, chosen.sizes);
    certificate = {found.residual, at::where(found.unique, found.margin, 0)};
  }
  const auto add = [&](const Tensor& where, const Tensor& speed) {
    certificate.margin = at::minimum(certificate.margin, at::where(where, speed, kInfinity).amin(-1) / scale);
  };
  const Tensor settled = touched & (normal_part(sum).abs() <= kSlack * scale.unsqueeze(-1));
  add(problem.may_choose & ~problem.is_chosen & ~settled, normal_part(sum));
  if (problem.jump.defined()) add(~settled & problem.jump.isfinite(), problem.jump);
  if (problem.times.defined() && contacts.gap.size(-1) > 1) {  // two impacts on one body, of which the first counts
    const Tensor times = at::where(geometry_.members(), problem.times.unsqueeze(-1), kInfinity);
    const Tensor two = std::get<0>(times.topk(2, -2, false));
    const Tensor apart = (two.select(-2, 1) - two.select(-2, 0)) / dt_;
    certificate.margin = at::minimum(certificate.margin, apart.nan_to_num(kInfinity).amin(-1));
  }
  return certificate;
}

Tensor RigidStepper::energy(const RigidState& state) const {
  const Tensor moving = mass_ * state.velocity.square().sum(-1);
  const Tensor turning = (state.angular_velocity * matvec(inertia_, state.angular_velocity)).sum(-1);
  const Tensor height = (state.position * gravity_.unsqueeze(-2)).sum(-1);
  return ((moving + turning) / 2 - mass_ * height).sum(-1);
}

}  // namespace lcp::physics
