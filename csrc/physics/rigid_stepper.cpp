#include "physics/rigid_stepper.h"

#include <ATen/ATen.h>
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

// Velocities of contacts that are at most this multiple of the largest one are round-off.
constexpr double kRoundOff = 1e-10;

// The parts along the normals, [..., c], of vectors [..., 3 c], and the reverse, with 0 along the tangents.
Tensor normal_part(const Tensor& x) { return x.unflatten(-1, {-1, 3}).select(-1, 2); }
Tensor along_normals(const Tensor& x) {
  const Tensor none = at::zeros_like(x);
  return vector_of({none, none, x}).flatten(-2);
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

void check(const RigidScene& scene, const RigidOptions& options) {
  TORCH_CHECK(!scene.bodies.empty(), "a scene must have at least one body");
  positive_number("dt", scene.dt);
  for (const RigidBody& body : scene.bodies) {
    const auto has = [](const Tensor& x, at::IntArrayRef last) {
      return x.dim() >= static_cast<std::int64_t>(last.size()) &&
             x.sizes().slice(x.dim() - static_cast<std::int64_t>(last.size())) == last;
    };
    TORCH_CHECK(has(body.inertia, {3, 3}), "inertia must be [..., 3, 3]; got ", body.inertia.sizes());
    TORCH_CHECK(body.radii.dim() > 0 && has(body.centers, {body.radii.size(-1), 3}),
                "centers must be [..., p, 3] and radii [..., p]; got ", body.centers.sizes(), " and ",
                body.radii.sizes());
  }
  for (const Plane& plane : scene.planes) {
    TORCH_CHECK(plane.normal.dim() > 0 && plane.normal.size(-1) == 3, "the normal of a plane must be [..., 3]; got ",
                plane.normal.sizes());
    const auto check_body = [&](std::int64_t body, std::int64_t first) {
      const auto bodies = static_cast<std::int64_t>(scene.bodies.size());
      TORCH_CHECK(body >= first && body < bodies, "a plane names body ", body, " of ", bodies);
    };
    check_body(plane.body, Plane::kWorld);
    for (const std::int64_t body : plane.touches) check_body(body, 0);
  }
  TORCH_CHECK(scene.gravity.dim() > 0 && scene.gravity.size(-1) == 3, "gravity must be [..., 3]; got ",
              scene.gravity.sizes());
  TORCH_CHECK(options.substeps >= 1, "substeps must be >= 1; got ", options.substeps);
  TORCH_CHECK(options.stabilization >= 0 && options.stabilization <= 1, "stabilization must be in [0, 1]; got ",
              options.stabilization);
  TORCH_CHECK(options.kappa == 0 || options.formulation != RigidFormulation::kCompliant,
              "kappa must be 0 for compliant contact; got ", options.kappa);
  if (options.formulation == RigidFormulation::kPolyhedral && options.kappa == 0) check_ties(options.ties);
}

}  // namespace

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
  // Where v_free is not finite it counts as 0, and q is NaN, as a sum of it: the products of operators of tensors would
  // make NaN of gradients that are 0.
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
    return {at::where(solved, motion.v, nan), at::where(solved, motion.gamma, nan), status,
            at::zeros_like(chosen_.sizes)};
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
    : options_(options), dt_(scene.dt), geometry_((check(scene, options), scene), dtype) {
  if (!options_.tolerance && (dtype == at::kDouble || options_.formulation == RigidFormulation::kExactCone)) {
    options_.tolerance = RigidOptions::kTolerance;
  }
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
  batch_ = common_shape({shape, leading(gravity_)});
  const std::int64_t pairs = geometry_.contacts();
  const auto of_contacts = [&](const char* name, const Tensor& x) {
    TORCH_CHECK(x.defined() && x.dim() > 0 && (x.size(-1) == 1 || x.size(-1) == pairs), name,
                " must be [..., 1] or [..., ", pairs, "], as there are pairs of contact; got ",
                x.defined() ? c10::str(x.sizes()) : "none");
    batch_ = common_shape({batch_, leading(x)});
    return expanded(x.to(dtype), leading(x).vec(), {pairs});
  };
  mu_ = of_contacts("mu", scene.mu);
  if (options.formulation == RigidFormulation::kCompliant) {
    stiffness_ = of_contacts("stiffness", scene.stiffness);
    dissipation_ = of_contacts("dissipation", scene.dissipation);
  } else {
    restitution_ = of_contacts("restitution", scene.restitution);
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
  StepContacts contacts{v_free, found.J, found.gap, {}, {}, {}, {}, {}, {}};
  if (options_.formulation == RigidFormulation::kCompliant) {
    const auto [v_hat, R] = contact_parameters(found.gap, stiffness_, dissipation_, delassus_diagonal(A_, found.J), dt_,
                                               options_.regularization);
    contacts.b = -v_hat;
    contacts.R = R;
    contacts.bad = is_bad(state, v_free, contacts);
    return contacts;
  }
  // The speeds with which contacts would close at the end of the step, and at its beginning.
  const Tensor rows = found.J.unflatten(-2, {-1, 3}).select(-2, 2);
  const Tensor speed = -matvec(rows, v_free);
  const Tensor earlier = -matvec(rows, at::cat({state.velocity, state.angular_velocity}, -1).flatten(-2));
  const Tensor arrival = found.gap / dt_;
  const Tensor threshold = options_.bounce_threshold ? at::full({1}, *options_.bounce_threshold, speed.options())
                                                     : (2 * dt_ * gravity_.square().sum(-1, true).sqrt()).detach();
  const Tensor is_open = found.gap > 0, is_fast = speed > threshold, arrives = speed > arrival;
  const Tensor impact = is_fast & arrives;
  // As separation_of of csrc/rigid/step.h has them.
  const Tensor on_the_way = impact & is_open;
  const Tensor growth = speed - earlier, first = (speed + earlier) / 2, square = first.square() + 2 * growth * arrival;
  const Tensor is_regular = on_the_way & (square > 0);
  const Tensor root = at::where(is_regular, first, 1) + at::where(is_regular, square, 1).sqrt();
  const Tensor share = at::where(is_regular, 2 * arrival / root, on_the_way.to(arrival));  // of the step
  const Tensor rebound = restitution_ * speed, after = (1 + restitution_) * growth * (share - 0.5);
  const Tensor opening = positive_part(rebound + at::minimum(after, rebound)), least = growth * share / 2;
  const Tensor is_held = impact & (opening < least);
  contacts.held = at::where(is_held, 1 - opening / at::where(is_held, least, 1), 0);
  const Tensor closing = at::where(is_open, arrival, options_.stabilization * arrival);
  contacts.b = along_normals(at::where(impact, at::where(is_open, -opening, at::minimum(-opening, closing)), closing));
  contacts.time = at::where(impact, dt_ * share, kInfinity);
  const Tensor to_threshold = at::where(arrives, (speed - threshold).abs(), kInfinity);
  contacts.jump = at::where(is_fast, at::minimum(to_threshold, (speed - arrival).abs()), to_threshold);
  contacts.bad = is_bad(state, v_free, contacts);
  return contacts;
}

RigidStepper::Chosen RigidStepper::choose(const StepContacts& contacts, const Tensor& is_chosen) const {
  Chosen chosen;
  chosen.sizes = is_chosen.sum(-1);
  const std::int64_t most = chosen.sizes.numel() > 0 ? chosen.sizes.max().item<std::int64_t>() : 0;
  chosen.index = is_chosen.logical_not().to(at::kByte).argsort(/*stable=*/true, /*dim=*/-1).narrow(-1, 0, most);
  chosen.J = taken(contacts.J.unflatten(-2, {-1, 3}), chosen.index).flatten(-3, -2);
  const auto taken_vector = [&](const Tensor& x, std::int64_t each) {
    return taken(x.unflatten(-1, {-1, each}).unsqueeze(-1), chosen.index).flatten(-3);
  };
  chosen.b = taken_vector(contacts.b, 3);
  chosen.mu = taken_vector(mu_, 1);
  if (contacts.R.defined()) chosen.R = taken_vector(contacts.R, 3);
  return chosen;
}

StepOutcome RigidStepper::solve(const Tensor& given, const StepContacts& contacts) const {
  const bool is_polyhedral = options_.formulation == RigidFormulation::kPolyhedral;
  const Tensor v_free =
      contacts.bad.any().item<bool>() ? given + at::where(contacts.bad, kNaN, 0).unsqueeze(-1) : given;
  const bool is_compliant = options_.formulation == RigidFormulation::kCompliant;
  const auto closing = [&](const Tensor& v, double slack) {
    const c10::NoGradGuard no_grad;
    const Tensor u = matvec(contacts.J, v), sum = u + contacts.b;
    const Tensor lift = is_compliant ? mu_ * u.unflatten(-1, {-1, 3}).narrow(-1, 0, 2).norm(2, {-1}) : Tensor{};
    const Tensor round_off =
        geometry_.contacts() > 0 ? slack * sum.abs().amax(-1, true) : at::zeros({1}, sum.options());
    return normal_part(sum) < (is_compliant ? lift - round_off : -round_off);
  };
  // Pairs that would not close carry no impulse. Solving for those that would without contact may bring others to
  // close; these are added until there are none. A smoothed derivative sees all pairs. The LCP of a pile at rest is
  // hard to solve for only some of its contacts, which round-off would choose.
  Tensor is_chosen =
      options_.kappa > 0 ? at::ones_like(contacts.gap, at::kBool) : closing(v_free, is_polyhedral ? -kRoundOff : 0);
  Tensor iterations = at::zeros({}, at::kLong), grown = at::ones({}, at::kBool);
  for (;;) {
    const Chosen chosen = choose(contacts, is_chosen);
    StepOutcome outcome = solve(v_free, chosen);
    outcome.iterations = iterations = iterations + at::where(grown, outcome.iterations, 0);
    Tensor next = is_chosen | closing(outcome.v, kRoundOff);
    if (is_polyhedral) {
      // Lemke's method may fail for some of the contacts, and not for all.
      const Tensor failed = (outcome.status != 0) & (outcome.status != static_cast<std::int8_t>(Status::kBadInput));
      next = next | failed.unsqueeze(-1);
    }
    grown = (next != is_chosen).any(-1);
    if (!grown.any().item<bool>()) {
      const Tensor impulses = at::where(chosen.exists().unsqueeze(-1), outcome.gamma.unflatten(-1, {-1, 3}), 0);
      const Tensor index = chosen.index.unsqueeze(-1).expand_as(impulses);
      Shape shape = contacts.gap.sizes().vec();
      shape.push_back(3);
      outcome.gamma = at::zeros(shape, impulses.options()).scatter(-2, index, impulses).flatten(-2);
      return outcome;
    }
    is_chosen = next;
  }
}

StepOutcome RigidStepper::solve(const Tensor& v_free, const Chosen& chosen) const {
  switch (options_.formulation) {
    case RigidFormulation::kExactCone: {
      FrictionResult result =
          solve_friction(A_, v_free, chosen.J, chosen.b, chosen.mu,
                         {.sizes = chosen.sizes, .kappa = options_.kappa, .tolerance = options_.tolerance});
      return {std::move(result.v), std::move(result.gamma), std::move(result.status), std::move(result.iterations)};
    }
    case RigidFormulation::kPolyhedral:
      return Polyhedral(*this, v_free, chosen).outcome();
    case RigidFormulation::kCompliant: {
      ContactResult result = solve_contact(A_, v_free, chosen.J, -chosen.b, chosen.R, chosen.mu,
                                           {.sizes = chosen.sizes, .tolerance = options_.tolerance});
      return {std::move(result.v), std::move(result.gamma), std::move(result.status), std::move(result.iterations)};
    }
  }
  unknown_formulation();
}

// The time of the first impact on each body, [..., B], or on one that it touches, or that this one touches, and so on;
// infinity where there is none.
Tensor RigidStepper::impact_times(const StepContacts& contacts, const Tensor& gamma) const {
  const Tensor touches = normal_part(gamma) > 0;
  Tensor none = at::full({}, kInfinity, gamma.options());
  if (!contacts.time.defined() || !(touches & contacts.time.isfinite()).any().item<bool>()) return none;
  const Tensor& members = geometry_.members();  // [c, B]
  const Tensor joins = touches.unsqueeze(-1) & members;
  Tensor of_contacts = contacts.time;
  for (;;) {
    const Tensor of_bodies = at::where(joins, of_contacts.unsqueeze(-1), none).amin(-2);
    const Tensor earliest = at::minimum(of_contacts, at::where(members, of_bodies.unsqueeze(-2), none).amin(-1));
    if (at::equal(at::where(touches, earliest, none), at::where(touches, of_contacts, none))) return of_bodies;
    of_contacts = earliest;
  }
}

RigidState RigidStepper::advance(const RigidState& state, const StepContacts& contacts, const Tensor& v,
                                 const Tensor& gamma) const {
  const Tensor nu = v.unflatten(-1, {-1, 6});
  Tensor motion = dt_ * nu;
  const Tensor times = impact_times(contacts, gamma), is_hit = times.isfinite();
  if (is_hit.any().item<bool>()) {
    // motion_of and held_motion of csrc/rigid/step.h.
    const Tensor before = at::cat({state.velocity, state.angular_velocity}, -1),
                 free = contacts.v_free.unflatten(-1, {-1, 6});
    const Tensor joins = (normal_part(gamma) > 0).unsqueeze(-1) & geometry_.members();  // [..., c, B]
    const Tensor flies = ~(joins & ~contacts.time.isfinite().unsqueeze(-1)).any(-2);
    const Tensor own = joins & (contacts.time.unsqueeze(-1) == times.unsqueeze(-2)) & flies.unsqueeze(-2);
    const Tensor sum = at::where(own, contacts.held.unsqueeze(-1), 0).sum(-2), held = sum / own.sum(-2).clamp_min(1);
    const Tensor time = at::where(is_hit, times, 0);
    const Tensor earlier = at::where(flies.unsqueeze(-1), free, before);
    const Tensor weight = held * time * (dt_ - time) / (2 * dt_);
    motion = motion + time.unsqueeze(-1) * (earlier - nu) + weight.unsqueeze(-1) * (before - free);
  }
  return {state.position + motion.narrow(-1, 0, 3), turned(state.orientation, motion.narrow(-1, 3, 3)),
          nu.narrow(-1, 0, 3), nu.narrow(-1, 3, 3)};
}

StepCertificate RigidStepper::certify(const Tensor& v_free, const StepContacts& contacts,
                                      const StepOutcome& outcome) const {
  const Tensor sum = matvec(contacts.J, outcome.v) + contacts.b;
  if (geometry_.contacts() == 0) {
    const Tensor none = at::zeros(sum.sizes().slice(0, sum.dim() - 1), sum.options());
    return {none, none + kInfinity};
  }
  const Tensor free = matvec(contacts.J, v_free) + contacts.b, scale = free.abs().amax(-1);
  // As `solve` chooses them.
  const Tensor round_off = options_.formulation == RigidFormulation::kPolyhedral ? kRoundOff * scale.unsqueeze(-1)
                                                                                 : at::zeros({}, scale.options());
  const Tensor is_chosen = (normal_part(outcome.gamma) > 0) | (normal_part(free) < round_off);
  const Chosen chosen = choose(contacts, is_chosen);
  const Tensor gamma = taken(outcome.gamma.unflatten(-1, {-1, 3}).unsqueeze(-1), chosen.index).flatten(-3);
  StepCertificate certificate;
  switch (options_.formulation) {
    case RigidFormulation::kExactCone: {
      const auto found = certify_friction(A_, v_free, chosen.J, chosen.b, chosen.mu, outcome.v, gamma, chosen.sizes);
      certificate = {found.residual, at::where(found.unique, found.margin, 0)};
      break;
    }
    case RigidFormulation::kPolyhedral:
      certificate = Polyhedral(*this, v_free, chosen).certify(scale);
      break;
    case RigidFormulation::kCompliant: {
      const auto found = certify_contact(A_, v_free, contacts.J, -contacts.b, contacts.R, mu_, outcome.v);
      return {found.residual, found.margin};
    }
  }
  const auto add = [&](const Tensor& where, const Tensor& speed) {
    certificate.margin = at::minimum(certificate.margin, at::where(where, speed, kInfinity).amin(-1) / scale);
  };
  add(~is_chosen, normal_part(sum));
  add(contacts.jump.isfinite(), contacts.jump);
  if (contacts.gap.size(-1) > 1) {  // two impacts on one body, of which the first counts
    const Tensor hits = (normal_part(outcome.gamma) > 0).unsqueeze(-1) & geometry_.members();
    const Tensor times = std::get<0>(at::where(hits, contacts.time.unsqueeze(-1), kInfinity).topk(2, -2, false));
    const Tensor apart = (times.select(-2, 1) - times.select(-2, 0)) / dt_;
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
